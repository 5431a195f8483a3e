package hostfs

import (
	"regexp"
	"strconv"
	"strings"
)

// PodNames are how people call a pod and its container. What is not known is empty.
type PodNames struct {
	Namespace, Pod, Container string
	Deployment                string // that the name of the pod tells
}

// Where a kubelet keeps the logs of containers. Only names of directories and links are read there, and no API is asked
// for them (pkg/kubelet/kuberuntime/helpers.go and legacy.go of Kubernetes).
const (
	podLogs       = "/var/log/pods"       // NAMESPACE_POD_UID/CONTAINER
	containerLogs = "/var/log/containers" // POD_NAMESPACE_CONTAINER-ID.log
)

// Longest names: of a label, and of a subdomain (RFC 1123).
const (
	maxLabel   = 63
	maxPodName = 253
)

var (
	label     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	subdomain = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)
)

// PodNamesOf finds the names of a pod by its uid, and that of the container by its id. Of a pod whose container has no
// link, as of CRI-O, the container is named where it is the only one.
func PodNamesOf(fs Reader, uid, container string) (n PodNames) {
	if uid == "" {
		return n
	}
	dir := ""
	names, _ := fs.ReadDir(podLogs) // not there, or not to be read: no names
	for _, name := range names {
		p := strings.Split(name, "_")
		if len(p) == 3 && p[2] == uid && isLabel(p[0]) && isPodName(p[1]) {
			n.Namespace, n.Pod, dir = p[0], p[1], name
		}
	}
	if n.Pod == "" {
		return n
	}
	n.Deployment = deploymentOf(n.Pod)
	if container == "" {
		return n
	}
	links, _ := fs.ReadDir(containerLogs)
	for _, name := range links {
		name, isLink := strings.CutSuffix(name, "-"+container+".log")
		of, ofPod := strings.CutPrefix(name, n.Pod+"_"+n.Namespace+"_")
		if isLink && ofPod && isLabel(of) {
			n.Container = of
			return n
		}
	}
	if only, _ := fs.ReadDir(podLogs + "/" + dir); len(only) == 1 && isLabel(only[0]) {
		n.Container = only[0]
	}
	return n
}

func isLabel(s string) bool { return len(s) <= maxLabel && label.MatchString(s) }

func isPodName(s string) bool { return len(s) <= maxPodName && subdomain.MatchString(s) }

// Names of pods of a Deployment end in the hash of its ReplicaSet, a decimal number of 32 bits, and five random
// characters. The digits 0 to 9 are written as these (SafeEncodeString in k8s.io/apimachinery/pkg/util/rand); the
// characters are of an alphabet without vowels and 0, 1, 3.
const hashDigits = "456789bcdf"

var ofReplicaSet = regexp.MustCompile(`^(.+)-([4-9bcdf]{8,10})-[bcdfghjklmnpqrstvwxz2456789]{5}$`)

// maxGenerated is how long names can be that Kubernetes makes up: the beginning of a longer one is cut
// (k8s.io/apiserver/pkg/storage/names).
const maxGenerated = 63

// deploymentOf is the Deployment of a pod, where its name tells: with a hash of eight digits or more. One in 40 is
// shorter.
func deploymentOf(pod string) string {
	m := ofReplicaSet.FindStringSubmatch(pod)
	if m == nil || len(pod) >= maxGenerated {
		return ""
	}
	number := strings.Map(func(r rune) rune { return '0' + rune(strings.IndexRune(hashDigits, r)) }, m[2])
	if _, err := strconv.ParseUint(number, 10, 32); err != nil || number[0] == '0' {
		return ""
	}
	return m[1]
}
