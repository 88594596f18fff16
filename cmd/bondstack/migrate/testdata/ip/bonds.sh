#!/bin/sh
set -e
modprobe bonding mode=active-backup miimon=100 max_bonds=1
ip link set bond0 address 02:00:00:00:00:70 mtu 9000
ip link set dev eth0 down
ip link set eth0 master bond0 && ip link set eth0 type bond_slave prio 5 queue_id 2
ifenslave bond0 eth1
echo 2 > /sys/class/net/bond0/bonding/primary_reselect
echo +10.0.0.1 > /sys/class/net/bond0/bonding/arp_ip_target
echo +10.0.0.3 > /sys/class/net/bond0/bonding/arp_ip_target
ip link set bond0 type bond primary eth0 fail_over_mac active num_grat_arp 3 resend_igmp 2 sparkle 1
ip link set bond0 up
ip addr add 10.0.0.2/24 brd + dev bond0 label bond0:x
ip addr add fd00::2/64 dev bond0 nodad
ip route add default via 10.0.0.1 dev bond0 metric 10 proto static
ip -6 route add default via fd00::1 dev bond0
ip r a 10.9.0.0/16 via 10.0.0.9
ip route add 10.7.0.0/16 via 192.0.2.1

ip link add name bond1 address 02:00:00:00:00:71 type bond \
  mode 802.3ad miimon 100 updelay 200 downdelay 200 peer_notify_delay 100 use_carrier 1 \
  xmit_hash_policy layer3+4 lacp_rate fast lacp_active off ad_select count ad_user_port_key 3 \
  ad_actor_sys_prio 77 ad_actor_system 02:00:00:00:00:72 min_links 1 all_slaves_active 1 lp_interval 2 \
  coupled_control off broadcast_neighbor on lacp_strict on num_unsol_na 4 arp_all_targets any \
  packets_per_slave 2 tlb_dynamic_lb 0
ip link set eth2 master bond1; ip link set eth2 type bond_slave actor_port_prio 50
echo +bond2 > /sys/class/net/bonding_masters
echo balance-rr > /sys/class/net/bond2/bonding/mode
echo 100 > /sys/class/net/bond2/bonding/arp_interval
ip link set bond2 type bond arp_ip_target 10.0.0.1,10.0.0.3 ns_ip6_target fd00::1 arp_validate all arp_missed_max 3
echo +eth3 >/sys/class/net/bond2/bonding/slaves 2>/dev/null
ip link set bond0 type bond active_slave eth1
ip link add link bond0 name bond0.5 type vlan protocol 802.1ad id 5 egress-qos-map 0:3
ip link add link bond0.5 name bond0.5.6 type vlan id 6
ip addr add 10.56.0.2 dev bond0.5.6
ip link add br0 type bridge
ip link set bond2 master br0
ip link set $NIC master bond0
tc qdisc add dev bond0 root fq
tc qdisc add dev eth9 root fq
ip link show bond0
ip link set eth9 up
