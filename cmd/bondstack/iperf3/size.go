package iperf3

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ParseSize reads a number of bytes or blocks as iperf3 does, such as 128K, 10M or
// 1.5G: the letters are powers of 1024. An empty text is 0.
func ParseSize(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	number, factor := text, 1.0
	if at := strings.IndexByte("KMGT", upper(text[len(text)-1])); at >= 0 {
		number, factor = text[:len(text)-1], math.Pow(1024, float64(at+1))
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !(v*factor >= 1 && v*factor <= maxTestAmount) {
		return 0, fmt.Errorf("%q is not a size, such as 100000, 128K, 10M or 1.5G", text)
	}
	return uint64(v * factor), nil
}

func upper(c byte) byte {
	if 'a' <= c && c <= 'z' {
		return c - 'a' + 'A'
	}
	return c
}
