package kernel

import (
	"bondstack/link"

	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// Attachment is what a link delivers to, in a shape that can be swapped atomically.
type Attachment struct {
	Dispatcher stack.NetworkDispatcher
	// List is the dispatcher where it takes lists, else nil.
	List link.ListDispatcher
}

// NewAttachment makes that of a dispatcher.
func NewAttachment(dispatcher stack.NetworkDispatcher) *Attachment {
	list, _ := dispatcher.(link.ListDispatcher)
	return &Attachment{dispatcher, list}
}
