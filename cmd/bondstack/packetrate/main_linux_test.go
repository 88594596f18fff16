package packetrate

import (
	"os"
	"testing"
)

// jobVariable has the test's program be a contender: see job.
const jobVariable = "BONDSTACK_PACKETRATE_JOB"

func TestMain(m *testing.M) {
	if text := os.Getenv(jobVariable); text != "" {
		work(text)
		return
	}
	os.Exit(m.Run())
}
