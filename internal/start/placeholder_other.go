//go:build !linux

package start

import "github.com/selfcage/selfcage/plan"

func holdAll(*plan.Plan) (release func(), err error) { return func() {}, nil }
