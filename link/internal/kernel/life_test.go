package kernel

import (
	"sync"
	"testing"
)

func TestLife(t *testing.T) {
	var l Life
	started, ended, told := 0, 0, 0
	if l.Wait() || l.Running() {
		t.Error("it waits or runs before the beginning")
	}
	l.Start(func() { started++ })
	l.Start(func() { started++ })
	if !l.Running() || started != 1 {
		t.Errorf("started %d times, running %v", started, l.Running())
	}
	l.SetOnCloseAction(func() { told++ })
	release := make(chan struct{})
	var wg sync.WaitGroup
	begun := make(chan struct{})
	wg.Go(func() {
		l.End(func() {
			close(begun)
			<-release
			ended++
		})
	})
	<-begun
	for range 4 { // these wait for the first
		wg.Go(func() {
			l.End(func() { t.Error("it ends twice") })
			if ended != 1 || !l.Wait() {
				t.Error("a second End did not wait")
			}
		})
	}
	l.Lock()
	if l.Running() {
		t.Error("it runs while it ends")
	}
	l.Unlock()
	close(release)
	wg.Wait()
	l.Start(func() { t.Error("it starts after its end") })
	if told != 1 {
		t.Errorf("the close action was called %d times", told)
	}
}
