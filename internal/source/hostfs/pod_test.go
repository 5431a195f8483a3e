package hostfs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	podOfTest = "01234567-89ab-cdef-0123-456789abcdef"
	// hash of 3456278903, as the controller of Deployments writes it
	cart = "cart-789b6cdf47-x2k9w"
)

// names makes a directory for each name that ends in a slash, and a link that leads nowhere for others.
func namesIn(t *testing.T, names ...string) Root {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		at := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(at), 0o755)
		if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(at, 0o755)
		} else if err == nil {
			err = os.Symlink("/nowhere", at)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return Root{Dir: dir}
}

func TestPodNamesOf(t *testing.T) {
	const logs = "/var/log/pods/"
	id := strings.Repeat("0123456789abcdef", 4)
	other := logs + "shop_redis-0_aaaaaaaa-89ab-cdef-0123-456789abcdef/redis/"
	pod := logs + "shop_" + cart + "_" + podOfTest + "/"
	link := "/var/log/containers/" + cart + "_shop_app-" + id + ".log"
	named, unnamed := PodNames{"shop", cart, "app", "cart"}, PodNames{"shop", cart, "", "cart"}
	ofOther := strings.Replace(link, "-01", "-11", 1)
	for name, c := range map[string]struct {
		files []string
		want  PodNames
	}{
		"no kubelet":          {nil, PodNames{}},
		"another pod":         {[]string{other}, PodNames{}},
		"by the link":         {[]string{other, pod + "app/", pod + "proxy/", link}, named},
		"one container":       {[]string{other, pod + "app/"}, named},
		"which container":     {[]string{pod + "app/", pod + "proxy/"}, unnamed},
		"a link of another":   {[]string{pod + "app/", pod + "proxy/", ofOther}, unnamed},
		"names of a terminal": {[]string{logs + "shop_\x1b[31m_" + podOfTest + "/"}, PodNames{}},
		"four parts":          {[]string{logs + "a_b_c_" + podOfTest + "/"}, PodNames{}},
		"a name too long":     {[]string{logs + "" + strings.Repeat("a", 64) + "_cart_" + podOfTest + "/"}, PodNames{}},
		"a container's name":  {[]string{pod + "A;rm/"}, unnamed},
		"the links alone":     {[]string{link}, PodNames{}},
	} {
		if got := PodNamesOf(namesIn(t, c.files...), podOfTest, id); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if got := PodNamesOf(namesIn(t, pod+"app/"), "", ""); got != (PodNames{}) {
		t.Errorf("a process of no pod: %+v", got)
	}
}

func TestDeploymentOf(t *testing.T) {
	for pod, want := range map[string]string{
		cart:                               "cart",
		"cart-api-5d4f8c7b9-x2k9w":         "cart-api",
		"redis-0":                          "", // of a StatefulSet
		"slowpath-x2k9w":                   "", // of a DaemonSet
		"backup-29301120-x2k9w":            "", // of a CronJob
		"cart-789b6cdf47-x2k9a":            "", // a vowel
		"cart-ffffffffff-x2k9w":            "", // 9999999999 is no number of 32 bits
		"cart-45678978-x2k9w":              "", // begins with 0
		"cart-b6cdf47-x2k9w":               "", // too short to be sure
		"-789b6cdf47-x2k9w":                "",
		strings.Repeat("a", 45) + cart[4:]: strings.Repeat("a", 45),
		strings.Repeat("a", 46) + cart[4:]: "", // its end may be cut
	} {
		if got := deploymentOf(pod); got != want {
			t.Errorf("%s: %q, want %q", pod, got, want)
		}
	}
}

// FuzzPodNames: whatever a directory is called, what comes out are names of Kubernetes.
func FuzzPodNames(f *testing.F) {
	f.Add("shop_" + cart + "_" + podOfTest)
	f.Add("shop_\x1b]0;x_" + podOfTest)
	f.Fuzz(func(t *testing.T, name string) {
		n := PodNamesOf(listing{podLogs: {name}, podLogs + "/" + name: {name}}, podOfTest, "1")
		if n.Pod != "" && (!isLabel(n.Namespace) || !isPodName(n.Pod) || n.Container != "" && !isLabel(n.Container)) {
			t.Errorf("%q: %+v", name, n)
		}
	})
}

// listing has directories by name, and no files.
type listing map[string][]string

func (l listing) ReadDir(name string) ([]string, error) { return l[name], nil }
func (l listing) ReadFile(string) ([]byte, error)       { return nil, os.ErrNotExist }
func (l listing) Open(string) (File, error)             { return nil, os.ErrNotExist }
