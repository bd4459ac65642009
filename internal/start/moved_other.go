//go:build !linux

package start

import "github.com/selfcage/selfcage/plan"

type moored struct{}

func moor(*plan.Plan, string) moored { return moored{} }

func (moored) adrift() []string { return nil }
