// Package hosts is tests only: programs that others wrote, built with the two lines that make a program a host
// program, do their main job bare and in a cage, and the results are compared. README.md says how to run them.
package hosts
