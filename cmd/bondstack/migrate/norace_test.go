//go:build !race

package migrate

// stride is which words TestNothingIsSilent tries: each.
const stride = 1
