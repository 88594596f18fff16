package config

import (
	"bondstack/bonding"
)

// Version is the version of the file's format.
const Version = 1

// File is a configuration file. The tags say how a field is written:
//
//	yaml      its key
//	doc       what it is, for the schema and the documentation
//	must      it has to be there
//	allowed   the texts that it may be
//	form      the form of the text, or of each text of a list: see forms
//	range     least and greatest of a number
//	most      how many entries a list may have
type File struct {
	Version int    `yaml:"version" doc:"The version of this format: 1." must:"yes" range:"1,1"`
	Log     Log    `yaml:"log,omitempty" doc:"What is logged, and how. The flags --log-level and --log-format come first."`
	Metrics string `yaml:"metrics,omitempty" doc:"Where Prometheus metrics of all bonds are served by HTTP, on the host." form:"listener"`
	Web     string `yaml:"web,omitempty" doc:"Where a live page of the bonds is served, on the host." form:"listener"`
	Bonds   []Bond `yaml:"bonds" doc:"The bonds. Each has slaves of its own." must:"yes" most:"64"`

	at map[string]place // where each value is in the text; nil if there is none
}

// Log says what is logged, and how.
type Log struct {
	Level  string `yaml:"level,omitempty" doc:"The least level that is logged. Default info." allowed:"debug,info,warn,error"`
	Format string `yaml:"format,omitempty" doc:"How a line is written. Default text." allowed:"text,json"`
}

// The values of Bond.Device.
const (
	DeviceStack = "stack" // a TCP/IP stack in the process
	DeviceTAP   = "tap"   // a network device of the kernel
)

// Bond is a bond with what is on it. The zero value of a field is its default.
type Bond struct {
	Name            string   `yaml:"name" doc:"The bond's name, and that of its interface." must:"yes" form:"name"`
	Mode            Mode     `yaml:"mode" doc:"The bonding mode, by Linux's name or number." must:"yes"`
	Device          string   `yaml:"device,omitempty" doc:"What has the bond: a TCP/IP stack in the process (stack), or a network device of the kernel (tap). Default stack." allowed:"stack,tap"`
	NetNS           string   `yaml:"netns,omitempty" doc:"The network namespace of a tap device: a name of ip netns, or a file." form:"netns"`
	Queues          int      `yaml:"queues,omitempty" doc:"How many queues a tap device has. Default 1." range:"1,256"`
	HardwareAddress string   `yaml:"hardware_address,omitempty" doc:"The bond's MAC address. Default that of the first slave." form:"mac"`
	MTU             uint32   `yaml:"mtu,omitempty" doc:"The bond's MTU in bytes. Default that of the first slave." range:"68,65535"`
	Exclusive       *bool    `yaml:"exclusive,omitempty" doc:"Keeps what the slaves receive from the host's own stack. Default no, but yes for a tap device in the namespace of its slaves, where they are of kind packet or xdp."`
	SetAddresses    bool     `yaml:"set_hardware_addresses,omitempty" doc:"Sets the slaves' MAC addresses on the host's interfaces too, until the end."`
	RequireSlaves   bool     `yaml:"require_slaves,omitempty" doc:"Fails when a slave is not there. Otherwise it joins when it appears."`
	Options         Options  `yaml:"options,omitempty" doc:"Options of the bond by their Linux names. Times are in milliseconds, as in Linux."`
	Slaves          []Slave  `yaml:"slaves" doc:"The slaves: a name, or a mapping." must:"yes" most:"4096"`
	Addresses       []string `yaml:"addresses,omitempty" doc:"Addresses with the length of their network's prefix; dhcp for DHCPv4, auto for IPv6 autoconfiguration." form:"address" most:"4096"`
	Routes          []Route  `yaml:"routes,omitempty" doc:"Routes over this interface." most:"4096"`
	DNS             *DNS     `yaml:"dns,omitempty" doc:"How names are resolved on the bond."`
	HostName        string   `yaml:"host_name,omitempty" doc:"What DHCP servers are told. Default nothing." form:"domain"`
	VLANs           []VLAN   `yaml:"vlans,omitempty" doc:"VLAN devices on the bond." most:"4094"`
	Serve           []string `yaml:"serve,omitempty" doc:"Services on the stack: echo:PORT, discard:PORT, iperf3:PORT, http:PORT=FOLDER." form:"service" most:"1024"`
	Forwards        []string `yaml:"forwards,omitempty" doc:"Ports that are passed on, such as tcp:2222=127.0.0.1:22." form:"forward" most:"1024"`
	Socks           string   `yaml:"socks,omitempty" doc:"Where the host finds a SOCKS5 proxy into the stack." form:"proxy"`
	SocksUsers      string   `yaml:"socks_users,omitempty" doc:"A file of lines NAME:PASSWORD, who may use the proxy. Default everybody." form:"path"`
	FlowLimit       int      `yaml:"flow_limit,omitempty" doc:"How many connections, and as many UDP flows, forwards and the proxy pass on at once. Default 1024." range:"1,65536"`
	TCPIdle         uint32   `yaml:"tcp_idle,omitempty" doc:"Resets connections of forwards and of the proxy after so many milliseconds without a byte. Default never." range:"1,2147483647"`
	UDPIdle         uint32   `yaml:"udp_idle,omitempty" doc:"Ends UDP flows of forwards and of the proxy after so many milliseconds without a datagram. Default 60000." range:"1000,2147483647"`
	TxQueue         int      `yaml:"tx_queue,omitempty" doc:"How many packets may wait for a goroutine that sends several at once. Default none." range:"1,65536"`
	UserNetwork     string   `yaml:"user_network,omitempty" doc:"Settings of the network that the slaves of kind user lead to, such as loopback=on,dns=192.0.2.1." form:"user network"`
	Control         string   `yaml:"control,omitempty" doc:"The control socket. Default control in a folder of the user's own for the first bond, and NAME.sock beside it for the others." form:"path"`
}

// Slave is a link of a bond. In a file its name alone stands for a slave that has
// the defaults.
type Slave struct {
	Name          string `yaml:"name" doc:"The interface's name." must:"yes" form:"name"`
	Kind          string `yaml:"kind,omitempty" doc:"How frames are sent and received: packet sockets (packet), AF_XDP (xdp), gVisor's fdbased, ordinary sockets of the host, which need no rights (user), or a descriptor that bondstack was started with, 3 with the name fd3 (fd). Default packet." allowed:"packet,xdp,fdbased,user,fd"`
	Prio          int32  `yaml:"prio,omitempty" doc:"Ranks the slaves in modes with an active one: the greatest that is up is preferred. Default 0." range:"-2147483648,2147483647"`
	Weight        uint32 `yaml:"weight,omitempty" doc:"Its weight in xmit_hash_map consistent. Default its speed in Mbit/s." range:"1,1000000000"`
	QueueID       uint16 `yaml:"queue_id,omitempty" doc:"Shown in the status. Default 0." range:"0,16"`
	ActorPortPrio uint16 `yaml:"actor_port_prio,omitempty" doc:"The port's priority in LACP. Default 255." range:"1,65535"`
	Disabled      bool   `yaml:"disabled,omitempty" doc:"Keeps the slave out of use, whatever its link says."`
}

// DefaultKind is the kind of a slave whose Kind is empty.
const DefaultKind = "packet"

// Route says where packets for a network go.
type Route struct {
	To     string `yaml:"to" doc:"The network, or default (with via, which says whether that is of IPv4 or IPv6)." must:"yes" form:"destination"`
	Via    string `yaml:"via,omitempty" doc:"The router. Default: the network is on the link itself." form:"ip"`
	Metric uint32 `yaml:"metric,omitempty" doc:"Of several routes to one network the one with the least is used. Default 0." range:"0,4294967295"`
}

// DNS says how names are resolved.
type DNS struct {
	Servers []string `yaml:"servers,omitempty" doc:"The servers' addresses, the first is asked first." form:"ip" most:"16"`
	Search  []string `yaml:"search,omitempty" doc:"Domains in which a short name is looked for." form:"domain" most:"32"`
}

// VLAN is a VLAN device. One that holds others and has no addresses of its own is
// no interface.
type VLAN struct {
	ID        uint16   `yaml:"id" doc:"The VLAN." must:"yes" range:"1,4094"`
	Protocol  string   `yaml:"protocol,omitempty" doc:"The kind of tag. Default 802.1Q." allowed:"802.1Q,802.1ad"`
	Priority  uint8    `yaml:"priority,omitempty" doc:"The priority in the tags of what is sent. Default 0." range:"0,7"`
	Addresses []string `yaml:"addresses,omitempty" doc:"Addresses, as those of a bond." form:"address" most:"4096"`
	Routes    []Route  `yaml:"routes,omitempty" doc:"Routes over this interface." most:"4096"`
	VLANs     []VLAN   `yaml:"vlans,omitempty" doc:"VLAN devices inside this one; they have no others inside." most:"4094"`
}

// Mode is a bonding mode, written by its Linux name, and read by name or number.
// A File that was read has no invalid one.
type Mode bonding.Mode

// String returns Linux's name.
func (m Mode) String() string { return bonding.Mode(m).String() }

// MarshalText writes Linux's name.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// Options are options of a bond by their Linux names, as text: those of
// bonding.OptionTable but mode and what slaves have keys for (queue_id, weight).
// In a file numbers and true and false (on and off) are taken too, and lists where
// the option is one, whose entries Options has with commas between them.
type Options map[string]string
