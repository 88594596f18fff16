package xmithash

// The functions here are spelled out for each policy, so that a frame costs one
// indirect call and the calls below it are direct.

// fold mixes the upper bytes of a hash into the lowest.
func fold(h uint32) uint32 {
	h ^= h >> 16
	return h ^ h>>8
}

func layer23(via Via) Func {
	return func(b []byte, size int) (uint32, bool) {
		p, v := locate(b, size, via)
		if v != found {
			return 0, v == opaque
		}
		f, v := outermost(b, size, p, false)
		return sum23(b, p, f, v)
	}
}

func encap23(via Via) Func {
	return func(b []byte, size int) (uint32, bool) {
		p, v := locate(b, size, via)
		if v != found {
			return 0, v == opaque
		}
		f, v := innermost(b, size, p, false)
		return sum23(b, p, f, v)
	}
}

func layer34(via Via) Func {
	return func(b []byte, size int) (uint32, bool) {
		p, v := locate(b, size, via)
		if v != found {
			return 0, v == opaque
		}
		f, v := outermost(b, size, p, true)
		return sum34(b, p, f, v)
	}
}

func encap34(via Via) Func {
	return func(b []byte, size int) (uint32, bool) {
		p, v := locate(b, size, via)
		if v != found {
			return 0, v == opaque
		}
		f, v := innermost(b, size, p, true)
		return sum34(b, p, f, v)
	}
}

func sum23(b []byte, p place, f flow, v verdict) (uint32, bool) {
	switch v {
	case found:
		return fold(layer2(b, p.typ) ^ f.addrs), true
	case opaque:
		return layer2(b, p.typ), true
	}
	return 0, false
}

func sum34(b []byte, p place, f flow, v verdict) (uint32, bool) {
	switch v {
	case found:
		return fold(f.word^f.addrs) >> 1, true
	case opaque:
		return layer2(b, p.typ), true
	}
	return 0, false
}
