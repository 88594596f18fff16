//go:build race

package migrate

// stride is which words TestNothingIsSilent tries: each third where all is slow.
const stride = 3
