// Package vnet is what links on the kernel's descriptors share, packet sockets
// and TAP devices: the virtio header that goes before each frame, the pooled
// views that frames are received into, the verification of checksums, and the
// cutting of segmented datagrams.
package vnet
