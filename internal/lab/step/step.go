// Package step tells what a lab does at the moment: starting servers, filling data, watching, cleaning up. Whoever
// wants to show that puts a function into the context.
package step

import (
	"context"
	"fmt"
)

type key struct{}

// With gives a context whose steps are shown; nil: they are not, such as those of a fault while doctor watches.
func With(ctx context.Context, show func(text string)) context.Context {
	return context.WithValue(ctx, key{}, show)
}

// Of gives a context whose steps begin with a name: of the run among many.
func Of(ctx context.Context, format string, args ...any) context.Context {
	show, _ := ctx.Value(key{}).(func(string))
	if show == nil {
		return ctx
	}
	name := fmt.Sprintf(format, args...)
	return With(ctx, func(text string) { show(name + ": " + text) })
}

// Say tells the step that begins.
func Say(ctx context.Context, format string, args ...any) {
	if show, _ := ctx.Value(key{}).(func(string)); show != nil {
		show(fmt.Sprintf(format, args...))
	}
}
