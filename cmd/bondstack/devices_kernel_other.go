//go:build !linux

package main

import "errors"

func benchKernel(int) (tableResult, error) { return tableResult{}, errors.New("skipped: needs Linux") }
