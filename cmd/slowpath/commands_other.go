//go:build !linux

package main

import "github.com/spf13/cobra"

func (a *app) bench() *cobra.Command   { return needsLinux("bench", shortBench, whyBench) }
func (a *app) matrix() *cobra.Command  { return needsLinux("matrix", shortMatrix, whyLab) }
func (a *app) capture() *cobra.Command { return needsLinux("capture", shortCapture, whyCapture) }
func (a *app) serve() *cobra.Command   { return needsLinux("serve", shortServe, whyServe) }
func (a *app) lab() *cobra.Command     { return needsLinux("lab", shortLab, whyLab) }

func (a *app) addDoor(*cobra.Command) {} // serve has no processes here
