// Package selfcage holds no code: a program that puts itself into a cage imports package reexec, and the command is
// cmd/selfcage. The tests here hold the whole tree to its rules.
package selfcage
