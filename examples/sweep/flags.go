package main

import "strings"

// flagSet is one way to call the compiler.
type flagSet []string

func (s flagSet) String() string { return strings.Join(s, " ") }

// reference is the level that all others are compared with.
const reference = "-O0"

var (
	plain  = []string{reference, "-O1", "-Os"} // tried as they are
	levels = []string{"-O2", "-O3"}            // tried with every combination of extras
	extras = []string{"-march=native", "-funroll-loops", "-flto", "-ffast-math"}
)

// flagSets lists what is tried, the reference first. At most depth extras are combined.
func flagSets(depth int) []flagSet {
	var sets []flagSet
	for _, level := range plain {
		sets = append(sets, flagSet{level})
	}
	for _, level := range levels {
		for _, combination := range combinations(extras, depth) {
			sets = append(sets, append(flagSet{level}, combination...))
		}
	}
	return sets
}

// combinations are the subsets of list with at most most elements, the empty one first, smaller ones before larger.
func combinations(list []string, most int) [][]string {
	all := [][]string{nil}
	for size := 1; size <= min(most, len(list)); size++ {
		all = append(all, choose(list, size)...)
	}
	return all
}

// choose lists the subsets with exactly size elements, each in the order of list.
func choose(list []string, size int) [][]string {
	if size == 0 {
		return [][]string{nil}
	}
	var all [][]string
	for i := 0; i+size <= len(list); i++ {
		for _, rest := range choose(list[i+1:], size-1) {
			all = append(all, append([]string{list[i]}, rest...))
		}
	}
	return all
}
