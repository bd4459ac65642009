package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// result is what one set of flags came to.
type result struct {
	flags flagSet
	size  int64
	cpu   time.Duration
	sum   string
	err   error
}

// row is a result beside the reference.
type row struct {
	result
	ratio float64 // of the processor time to that of the reference
	ok    bool    // it ran and printed what the reference prints
	note  string
}

// rank compares with the first result, the reference, and sorts: the right ones by time, then those that do not count.
func rank(results []result) []row {
	rows := make([]row, 0, len(results))
	for _, r := range results {
		rows = append(rows, compare(r, results[0]))
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		if a.ok != b.ok {
			return order(a.ok)
		}
		return cmp.Compare(a.cpu, b.cpu)
	})
	return rows
}

// order puts what is true first.
func order(first bool) int {
	if first {
		return -1
	}
	return 1
}

func compare(r, ref result) row {
	switch {
	case r.err != nil:
		return row{result: r, note: verdict(r.err)}
	case r.sum != ref.sum:
		return row{result: r, ratio: ratio(r.cpu, ref.cpu), note: "differs: " + r.sum}
	}
	return row{result: r, ratio: ratio(r.cpu, ref.cpu), ok: true, note: "ok"}
}

// ratio is 0 where the reference took no measurable time.
func ratio(d, ref time.Duration) float64 {
	if ref <= 0 {
		return 0
	}
	return float64(d) / float64(ref)
}

var errNoResult = errors.New("no set of flags has a result")

// render prints the rows, then why some have no result, then the best.
func render(w io.Writer, rows []row) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "flags\tsize\ttime\tratio\tchecksum")
	for _, r := range rows {
		fmt.Fprintln(table, cells(r))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, r := range rows {
		if r.err != nil {
			fmt.Fprintf(w, "not counted: %s: %v\n", r.flags, r.err)
		}
	}
	if len(rows) == 0 || !rows[0].ok {
		return errNoResult
	}
	_, err := fmt.Fprintf(w, "best: %s\n", rows[0].flags)
	return err
}

func cells(r row) string {
	if r.err != nil {
		return fmt.Sprintf("%s\t-\t-\t-\t%s", r.flags, r.note)
	}
	return fmt.Sprintf("%s\t%d\t%.2f ms\t%.2f\t%s", r.flags, r.size, r.cpu.Seconds()*1e3, r.ratio, r.note)
}
