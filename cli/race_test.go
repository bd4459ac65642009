//go:build race

package cli_test

func init() { raceDetector = true }
