package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"slowpath/internal/lab/apps"
	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
)

// AppScenario is an application, the path to its server, and the fault beside it, if any.
type AppScenario struct {
	App   apps.Name
	Path  string // Direct, HAProxy, Twemproxy
	Fault string // id of its cause; empty: none
	// Make makes it as Scenario.Make does, and returns the application too.
	Make func(ctx context.Context, l *Lab) (Scene, *apps.Running, error)
}

// Paths from an application to its server.
const (
	Direct    = "direct"
	HAProxy   = "haproxy"
	Twemproxy = "twemproxy"
	Envoy     = "envoy" // of no application
)

// ID is the name of the scenario: app-APP, app-APP-PATH or app-APP-FAULT.
func (a AppScenario) ID() string {
	id := "app-" + string(a.App)
	if a.Path != Direct {
		id += "-" + a.Path
	}
	if a.Fault != "" {
		id += "-" + a.Fault
	}
	return id
}

// Scenario is the application as a scenario of the catalogue.
func (a AppScenario) Scenario() Scenario {
	sc := Scenario{ID: a.ID(), Cause: HealthyCause, Title: fmt.Sprintf("the application %s, %s", a.App, a.Path)}
	if a.Fault != "" {
		sc.Cause = a.Fault
		sc.Title += ", beside the fault"
	}
	sc.Make = func(ctx context.Context, l *Lab) (Scene, error) {
		scene, _, err := a.Make(ctx, l)
		return scene, err
	}
	return sc
}

// AppScenarios are all applications: healthy over each path, then with each fault.
func AppScenarios() []AppScenario {
	var all []AppScenario
	for _, app := range apps.Catalogue() {
		for _, path := range []string{Direct, HAProxy, Twemproxy} {
			all = append(all, AppScenario{App: app.Name, Path: path, Make: healthyApp(app, path)})
		}
		for _, f := range appFaults {
			all = append(all, AppScenario{App: app.Name, Path: Direct, Fault: f.cause, Make: faultyApp(app, f)})
		}
	}
	return all
}

// AppScenariosOf are all those of an application, or the one with an id.
func AppScenariosOf(name string) []AppScenario {
	return slices.DeleteFunc(AppScenarios(), func(a AppScenario) bool {
		return a.ID() != name && string(a.App) != name
	})
}

// findApp returns the scenario of an application with an id.
func findApp(id string) (Scenario, bool) {
	if !strings.HasPrefix(id, "app-") {
		return Scenario{}, false
	}
	for _, a := range AppScenarios() {
		if a.ID() == id {
			return a.Scenario(), true
		}
	}
	return Scenario{}, false
}

// steady is how long an application works before the watch: pools fill, and JVMs compile what runs often.
const steady = 4 * time.Second

// appScene is where an application finds its server.
type appScene struct {
	addr   string
	cpu    string // CPUs that it may use; empty: all
	target Scene
}

// runApp starts an application in a scene and lets it work for a time.
func (l *Lab) runApp(ctx context.Context, app apps.App, s appScene, o apps.Options) (Scene, *apps.Running, error) {
	o.Addr = s.addr
	running, err := l.App(ctx, AppSpec{Name: app.Name, Options: o, CPU: s.cpu})
	if err == nil && !pause(ctx, steady) {
		err = ctx.Err()
	}
	return s.target, running, err
}

func healthyApp(app apps.App, path string) func(context.Context, *Lab) (Scene, *apps.Running, error) {
	return func(ctx context.Context, l *Lab) (Scene, *apps.Running, error) {
		if path == Twemproxy && !app.Twemproxy {
			return Scene{}, nil, fmt.Errorf("%w: twemproxy does not know all commands of %s: %s", fault.ErrCannot,
				app.Name, app.Commands)
		}
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, nil, err
		}
		at := appScene{addr: s.Addr, target: Scene{Target: s.Addr}}
		if path != Direct {
			proxy, err := l.proxy(ctx, path, s)
			if err != nil {
				return Scene{}, nil, err
			}
			// both hops, as docs/tasks.md has it
			at = appScene{addr: proxy.Addr, target: Scene{Target: proxy.Addr, Args: []string{s.Addr}}}
		}
		return l.runApp(ctx, app, at, apps.Options{Twemproxy: path == Twemproxy})
	}
}

// proxy starts a proxy in front of servers.
func (l *Lab) proxy(ctx context.Context, path string, all ...*fleet.Instance) (*fleet.Instance, error) {
	start := l.Fleet.StartHAProxy
	switch path {
	case Twemproxy:
		start = l.Fleet.StartTwemproxy
	case Envoy:
		start = l.Fleet.StartEnvoy
	}
	p, err := start(ctx, all...)
	if errors.Is(err, fleet.ErrNoProxy) {
		return nil, fmt.Errorf("%w: %w", fault.ErrCannot, err)
	}
	if err != nil {
		return nil, err
	}
	l.Defer(p.Stop)
	return p, nil
}

// appFault is a fault of the server, its host or the path to it.
type appFault struct {
	cause string
	make  func(context.Context, *Lab) (appScene, error)
}

// appFaults are those of the scenarios with the same ids, beside whose load the application works.
var appFaults = []appFault{
	beside(serverCFSThrottled, ""),
	beside(slowCommand, ""),
	beside(processFrozen, ""),
	beside(serverCPUContention, otherCPU()),
	beside(packetLossRTO, ""),
	beside(rttFloor, ""),
}

// beside makes a scenario, whose target is the address that the application uses too.
func beside(sc Scenario, cpu string) appFault {
	return appFault{sc.Cause, func(ctx context.Context, l *Lab) (appScene, error) {
		scene, err := sc.Make(ctx, l)
		return appScene{addr: scene.Target, cpu: cpu, target: scene}, err
	}}
}

func faultyApp(app apps.App, f appFault) func(context.Context, *Lab) (Scene, *apps.Running, error) {
	return func(ctx context.Context, l *Lab) (Scene, *apps.Running, error) {
		at, err := f.make(ctx, l)
		if err != nil {
			return Scene{}, nil, err
		}
		return l.runApp(ctx, app, at, apps.Options{})
	}
}
