package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// textSize is the size of a program's code and constants as size(1) says, or the size of the file where there is no
// size(1): not every compiler comes with it.
func textSize(ctx context.Context, bin string) (int64, error) {
	out, err := exec.CommandContext(ctx, "size", bin).Output()
	if errors.Is(err, exec.ErrNotFound) {
		info, err := os.Stat(bin)
		if err != nil {
			return 0, err
		}
		return info.Size(), nil
	}
	if err != nil {
		return 0, &failure{what: "has no size", err: err}
	}
	return parseSize(string(out))
}

// parseSize reads the first column of the second line: "text data bss dec hex filename" is the first.
func parseSize(out string) (int64, error) {
	_, second, _ := strings.Cut(out, "\n")
	fields := strings.Fields(second)
	if len(fields) == 0 {
		return 0, fmt.Errorf("size: unexpected output %q", out)
	}
	n, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("size: unexpected output %q", out)
	}
	return n, nil
}
