package door_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"slowpath/internal/agent/door"
	"slowpath/internal/house/memnet"
)

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// open runs a door before an agent, both until the test ends.
func open(t *testing.T, incidents string, agent http.HandlerFunc) dialer {
	t.Helper()
	l, dial := memnet.Listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	inside := memnet.Serve(t, agent)
	go func() {
		ended <- door.Serve(ctx, l, door.Options{Dial: inside, Incidents: incidents, Log: io.Discard})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return dial
}

// send sends a request on a connection of its own, and reads the reply.
func (d dialer) send(t *testing.T, request string) (c net.Conn, reply *http.Response, body string) {
	t.Helper()
	c, err := d(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	go io.WriteString(c, request)
	if reply, err = http.ReadResponse(bufio.NewReader(c), nil); err != nil {
		t.Fatalf("%.100q: %v", request, err)
	}
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return c, reply, string(text)
}

const get = "GET /%s HTTP/1.1\r\nHost: slowpath\r\n%s\r\n"

// TestRequests: the agent gets a request as it was sent, but for who sent it, which it cannot say itself.
func TestRequests(t *testing.T) {
	dial := open(t, t.TempDir(), func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %q %d %q", r.Method, r.Host, r.RequestURI, r.Header.Values(door.From), len(body),
			r.Header.Get("Cookie"))
	})
	for request, want := range map[string]string{
		fmt.Sprintf(get, "a%2fb//c?d=%20e", "Cookie: f\r\n"): `GET slowpath /a%2fb//c?d=%20e ["memory"] 0 "f"`,
		fmt.Sprintf(get, "", "slowpath-from: 10.0.0.1:1\r\nSlowpath-From: 10.0.0.2:2\r\n"): `GET slowpath / ["memory"] ` +
			`0 ""`,
		"POST /x HTTP/1.1\r\nHost: y\r\nContent-Length: 3\r\n\r\nabc": `POST y /x ["memory"] 3 ""`,
		"POST /x HTTP/1.1\r\nHost: y\r\nContent-Length: 70000\r\n\r\n" + strings.Repeat("a", 70000): fmt.Sprintf(
			`POST y /x ["memory"] %d ""`, door.MaxBodyBytes+1),
	} {
		if _, reply, body := dial.send(t, request); reply.StatusCode != 200 || body != want {
			t.Errorf("%.100q: %d %s, want %s", request, reply.StatusCode, body, want)
		}
	}
	if _, reply, _ := dial.send(t, "CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n"); reply.StatusCode != 405 {
		t.Errorf("CONNECT: %d", reply.StatusCode)
	}
}

// TestFilesOfTheDoor: it opens files of incidents that the agent names, through no link, and none that somebody else
// names. It does not tell where they are.
func TestFilesOfTheDoor(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	const id = "20261124T031207Z-1"
	for _, err := range []error{
		os.Mkdir(filepath.Join(dir, id), 0o700),
		os.WriteFile(filepath.Join(dir, id, "report.html"), []byte("the report"), 0o600),
		os.WriteFile(filepath.Join(outside, "report.html"), []byte("secret"), 0o600),
		os.Symlink(outside, filepath.Join(dir, "link")),
		os.Symlink(filepath.Join(outside, "report.html"), filepath.Join(dir, id, "linked")),
		os.Symlink("report.html", filepath.Join(dir, id, "inside")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	dial := open(t, dir, func(w http.ResponseWriter, r *http.Request) {
		if named := r.URL.Query().Get("file"); named != "" {
			w.Header().Set(door.File, named)
		}
		fmt.Fprint(w, "of the agent")
	})
	for _, method := range []string{"GET", "HEAD"} {
		request := strings.Replace(fmt.Sprintf(get, "?file="+id+"/report.html", ""), "GET", method, 1)
		c, err := dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		go io.WriteString(c, request)
		reply, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(reply.Body)
		if want := map[string]string{"GET": "the report"}[method]; err != nil || reply.StatusCode != 200 ||
			string(body) != want || reply.ContentLength != 10 || reply.Header.Get(door.File) != "" {
			t.Errorf("%s: %d %q %v %v", method, reply.StatusCode, body, reply.Header, err)
		}
	}
	for _, named := range []string{
		"link/report.html", id + "/linked", id + "/inside", id + "/none", "none/report.html", "../report.html",
		id + "/", "/" + id, id + "/../" + id + "/report.html", ".", "./report.html",
	} {
		_, reply, body := dial.send(t, fmt.Sprintf(get, "?file="+named, ""))
		if reply.StatusCode != 404 || strings.Contains(body, "secret") || strings.Contains(body, dir) {
			t.Errorf("%s: %d %s", named, reply.StatusCode, body)
		}
	}
	if _, _, body := dial.send(t, fmt.Sprintf(get, "", door.File+": "+id+"/report.html\r\n")); body != "of the agent" {
		t.Errorf("named by who asks: %s", body)
	}
}

// TestConnectionsAreBounded: beyond the bound a connection waits until another one ends; after a wrong token that was
// one too many the connection ends.
func TestConnectionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := open(t, t.TempDir(), func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/guess" {
				w.WriteHeader(http.StatusTooManyRequests)
			}
		})
		var first net.Conn
		for i := range door.MaxConnections {
			c, _, _ := dial.send(t, fmt.Sprintf(get, "", ""))
			if i == 0 {
				first = c
			}
		}
		answered := make(chan bool, 1)
		go func() {
			dial.send(t, fmt.Sprintf(get, "", ""))
			answered <- true
		}()
		synctest.Wait()
		select {
		case <-answered:
			t.Errorf("more than %d connections", door.MaxConnections)
		default:
		}
		first.Close()
		<-answered
	})
	synctest.Test(t, func(t *testing.T) {
		dial := open(t, t.TempDir(), func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusTooManyRequests)
		})
		c, reply, _ := dial.send(t, fmt.Sprintf(get, "guess", ""))
		if _, err := c.Read(make([]byte, 1)); !reply.Close || err != io.EOF {
			t.Errorf("a guess too many: %v, then %v", reply.Header, err)
		}
	})
}

// TestSlowBodies: a request that does not come to its end within 15 s is cut off, and the agent never sees it.
func TestSlowBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := open(t, t.TempDir(), func(http.ResponseWriter, *http.Request) { t.Error("the agent was asked") })
		began := time.Now()
		_, reply, _ := dial.send(t, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\na")
		if took := time.Since(began); reply.StatusCode != http.StatusRequestTimeout || took != 15*time.Second {
			t.Errorf("%d after %v", reply.StatusCode, took)
		}
	})
}

// TestDoorWithoutAgent: who asks is told that the agent does not answer.
func TestDoorWithoutAgent(t *testing.T) {
	l, dial := memnet.Listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- door.Serve(ctx, l, door.Options{Log: io.Discard, Dial: func(context.Context, string, string,
		) (net.Conn, error) {
			return nil, os.ErrClosed
		}})
	}()
	_, reply, body := dialer(dial).send(t, fmt.Sprintf(get, "", ""))
	if reply.StatusCode != http.StatusBadGateway || !strings.Contains(body, "its log says why") {
		t.Errorf("%d %s", reply.StatusCode, body)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
