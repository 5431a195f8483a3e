package hostfs

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Program is what a process runs, and for whom. Nothing of its arguments but the name of a script, a module or a jar
// is kept: there may be passwords among them. What may not be read is empty.
type Program struct {
	Comm string // name of its main thread, as in ps
	// Name is what its command line runs: "worker.py", "celery", "app.jar", "redis-cli", or where it tells no script
	// the interpreter ("python3"); empty where it has no command line any more, as it ends. At most 40 bytes of
	// letters, digits and ._@+-:/
	Name      string
	User      string // its effective user by the host's /etc/passwd, else the number
	Unit      string // of systemd
	Container string // id
	Pod       string // of Kubernetes, uid

	// Of Kubernetes, as in PodNames.
	PodNamespace, PodName, ContainerName, Deployment string
}

// Bounds of what is read of a process, which decides how long its command line is.
const (
	maxProgramName = 40      // with its number a process is a label of a metric, of at most 64 bytes
	maxCommandLine = 4 << 10 // bytes: options of a JVM fill kilobytes
)

// Reader is the part of FS by which ProgramOf reads.
type Reader interface {
	ReadFile(name string) ([]byte, error)
	Open(name string) (File, error)
	ReadDir(name string) ([]string, error)
}

// ProgramOf reads what a process runs; false where it has ended.
func ProgramOf(fs Reader, pid int) (Program, bool) {
	dir := fmt.Sprintf("/proc/%d", pid)
	status, err := fs.ReadFile(dir + "/status")
	if err != nil {
		return Program{}, false
	}
	p := Program{Comm: printable(StatusField(status, "Name"))}
	if uids := strings.Fields(StatusField(status, "Uid")); len(uids) > 1 {
		if uid, err := strconv.Atoi(uids[1]); err == nil {
			p.User = UserName(fs, uid)
		}
	}
	p.Name = ProgramName(p.Comm, readStart(fs, dir+"/cmdline", maxCommandLine))
	groups, _ := fs.ReadFile(dir + "/cgroup")
	p.Pod, p.Container, p.Unit = OwnerOf(string(groups))
	n := PodNamesOf(fs, p.Pod, p.Container)
	p.PodNamespace, p.PodName, p.ContainerName, p.Deployment = n.Namespace, n.Pod, n.Container, n.Deployment
	return p, true
}

// readStart reads the first bytes of a file; none where that is not possible.
func readStart(fs Reader, name string, most int) []byte {
	f, err := fs.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	b := make([]byte, most)
	n, _ := f.ReadAt(b, 0)
	return b[:n]
}

// StatusField is the text of a "Name:\tvalue" line of /proc/PID/status.
func StatusField(status []byte, name string) string {
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte(name+":")); ok {
			return string(bytes.TrimSpace(rest))
		}
	}
	return ""
}

// UserName is the name of a user by /etc/passwd; the number where it has none.
func UserName(fs Reader, number int) string {
	uid := strconv.Itoa(number)
	passwd, _ := fs.ReadFile("/etc/passwd")
	for line := range bytes.Lines(passwd) {
		if f := bytes.SplitN(line, []byte(":"), 4); len(f) == 4 && string(f[2]) == uid {
			return cleanName(string(f[0]))
		}
	}
	return uid
}

// interpreter is how a program is told on the command line of what runs it.
type interpreter struct {
	names  []string // beginnings of its own name, before digits and dots
	takes  []string // options whose value is the next argument
	tells  []string // options whose value names the program
	inline []string // options whose value is the program itself: it has no name
	// classes: the first argument that is no option is a class, and no file
	classes bool
}

// interpreters by the documentation of each (python --help, node --help, java --help, ruby -h, perl -h, php -h, man
// bash).
var interpreters = []interpreter{
	{
		names: []string{"python", "pypy"}, takes: []string{"-W", "-X", "--check-hash-based-pycs"},
		tells: []string{"-m"}, inline: []string{"-c"},
	},
	{
		names: []string{"node", "nodejs", "bun", "deno"},
		takes: []string{
			"-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions", "--env-file",
			"--title", "--inspect-port", "--icu-data-dir", "--openssl-config",
		},
		inline: []string{"-e", "--eval", "-p", "--print", "-pe"},
	},
	{
		names: []string{"java"},
		takes: []string{
			"-cp", "-classpath", "--class-path", "-p", "--module-path", "--upgrade-module-path", "--add-modules",
			"--add-exports", "--add-opens", "--add-reads", "--limit-modules", "--patch-module",
			"--enable-native-access",
		},
		tells: []string{"-jar", "-m", "--module"}, classes: true,
	},
	{names: []string{"ruby", "jruby"}, takes: []string{"-r", "-I", "-C", "-E"}, inline: []string{"-e"}},
	{names: []string{"perl"}, takes: []string{"-I"}, inline: []string{"-e", "-E"}},
	{
		names: []string{"php", "php-cli"}, takes: []string{"-c", "-d", "-z"}, tells: []string{"-f"},
		inline: []string{"-r"},
	},
	{names: []string{"bash", "sh", "dash", "zsh"}, takes: []string{"-o", "-O"}, inline: []string{"-c"}},
}

// scriptSuffixes end names of files that are programs.
var scriptSuffixes = []string{".py", ".pyc", ".js", ".mjs", ".cjs", ".ts", ".jar", ".rb", ".pl", ".php", ".sh"}

// ProgramName is the name of the program that a command line runs, as /proc/PID/cmdline has it: arguments that end in a
// zero byte, and the name of its main thread. It is the file, module, jar or class that an interpreter was given, else
// the first argument without its directory: where that is another than the thread's name, which the kernel takes from
// the program's file, it is a title, which may say anything, and the thread's name is taken. Empty where there is no
// argument (a thread of the kernel).
func ProgramName(comm string, cmdline []byte) string {
	args := strings.Split(strings.TrimRight(string(cmdline), "\x00"), "\x00")
	// a program may write a title in place of its arguments: "redis-server *:6379", "gunicorn: worker [app]"
	title, _, _ := strings.Cut(args[0], " ")
	own := strings.TrimRight(path.Base(strings.TrimLeft(title, "-")), ":")
	if title == "" || own == "/" || own == "." {
		return ""
	}
	for _, i := range interpreters {
		if !i.is(own) {
			continue
		}
		if name := i.program(args[1:]); name != "" {
			return cleanName(name)
		}
	}
	if !strings.HasPrefix(own, comm) {
		own = comm
	}
	return cleanName(own)
}

// is reports whether a name is that of the interpreter: "python3.11".
func (i interpreter) is(own string) bool {
	for _, name := range i.names {
		if rest, ok := strings.CutPrefix(own, name); ok && strings.Trim(rest, "0123456789.") == "" {
			return true
		}
	}
	return false
}

// program is what the arguments of an interpreter name; empty where they do not, or where what looks like a name may be
// the value of an option that is not known.
func (i interpreter) program(args []string) string {
	unknown := false
	for at := 0; at < len(args); at++ {
		arg := args[at]
		switch {
		case slices.Contains(i.inline, arg):
			return ""
		case slices.Contains(i.tells, arg):
			if at+1 == len(args) {
				return ""
			}
			return i.named(args[at+1])
		case slices.Contains(i.takes, arg):
			at++
		case arg == "--":
		case strings.HasPrefix(arg, "-"):
			unknown = unknown || strings.HasPrefix(arg, "--") && !strings.Contains(arg, "=")
		case unknown && !isScript(arg):
			return ""
		default:
			return i.named(arg)
		}
	}
	return ""
}

// named is the name of a file without its directory, or of a class or a module.
func (i interpreter) named(arg string) string {
	if i.classes && !isScript(arg) {
		arg, _, _ = strings.Cut(arg, "/") // module/class
		return arg
	}
	return path.Base(arg)
}

func isScript(arg string) bool {
	return slices.ContainsFunc(scriptSuffixes, func(suffix string) bool { return strings.HasSuffix(arg, suffix) })
}

func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return '?'
		}
		return r
	}, s)
	return strings.ToValidUTF8(s[:min(len(s), maxProgramName)], "")
}

// cleanName makes a name of others short, and of few kinds of characters.
func cleanName(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("._@+-:/", r):
			return r
		}
		return '?'
	}, s)
	return s[:min(len(s), maxProgramName)]
}

var (
	containerID = regexp.MustCompile(`(?:^|[/:-])([0-9a-f]{64})(?:\.scope)?(?:/|$)`)
	podUID      = regexp.MustCompile(`pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})`)
	systemdUnit = regexp.MustCompile(`([^/\n]+\.(?:service|scope))(?:/|$)`)
)

// OwnerOf reads the Kubernetes pod, the container and the systemd unit out of /proc/PID/cgroup or one of its paths: the
// cgroupfs driver writes /kubepods/burstable/podUID/ID, the systemd driver
// kubepods-burstable-podUID.slice/cri-containerd-ID.scope, Docker /docker/ID or system.slice/docker-ID.scope, Podman
// machine.slice/libpod-ID.scope.
func OwnerOf(groups string) (pod, container, unit string) {
	for line := range strings.Lines(groups) {
		line = strings.TrimSuffix(line, "\n")
		if m := podUID.FindStringSubmatch(line); m != nil && pod == "" {
			pod = strings.ReplaceAll(m[1], "_", "-")
		}
		if m := containerID.FindStringSubmatch(line); m != nil && container == "" {
			container = m[1]
		}
		if m := systemdUnit.FindAllStringSubmatch(line, -1); m != nil && unit == "" {
			unit = m[len(m)-1][1]
		}
	}
	if container != "" {
		unit = ""
	}
	return pod, container, unit
}
