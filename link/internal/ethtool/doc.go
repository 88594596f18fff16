// Package ethtool asks and tells the kernel about network interfaces by the
// ethtool calls of linux/ethtool.h. There is nothing in it where there is no
// Linux.
package ethtool
