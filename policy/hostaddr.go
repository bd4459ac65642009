package policy

import (
	"strconv"
	"strings"
)

// Addresses are read here and not by net/netip, which a host program would have to link and whose package variables need
// work before main.

// address reads "10.1.2.3", "10.0.0.0/8", "[fd00::1]" or "[fd00::/8]" into h and says what is wrong with it.
func (h *Host) address(s string, literal bool) (cause, hint string) {
	const asSpelt = "write an address in full, as in 10.1.2.3, 10.0.0.0/8, [2001:db8::1] or [fd00::/8]"
	if literal {
		if s[len(s)-1] != ']' {
			return "has a [ without its ]", asSpelt
		}
		s = s[1 : len(s)-1]
	}
	s, prefix, network := strings.Cut(s, "/")
	ok, size := false, 32
	if literal {
		h.kind, size = 6, 128
		h.addr, ok = parseIPv6(s)
	} else {
		h.kind = 4
		ok = parseIPv4(h.addr[:4], s)
	}
	if !ok {
		return "ends like an address and is none", asSpelt
	}
	h.bits = uint8(size)
	if network {
		n, err := strconv.Atoi(prefix)
		if err != nil || n < 0 || n > size || strconv.Itoa(n) != prefix {
			return "has a network prefix that is none", asSpelt
		}
		h.bits = uint8(n)
	}
	mapped := [12]byte{10: 0xff, 11: 0xff}
	switch {
	case h.bits == 0:
		return "names every host", hostHint
	case !sameBits(h.addr, masked(h.addr, int(h.bits)), 128):
		return "has bits behind its network prefix", "for that one address leave the / and what follows out"
	case h.kind == 6 && [12]byte(h.addr[:12]) == mapped:
		return "is an IPv4 address in IPv6 form", "write it as IPv4: 10.1.2.3"
	}
	return "", ""
}

// parseIPv4 reads four decimal numbers without leading zeros, which some read as octal.
func parseIPv4(to []byte, s string) bool {
	parts := strings.Split(s, ".")
	if len(parts) != 4 {
		return false
	}
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 8)
		if err != nil || strconv.Itoa(int(n)) != p {
			return false
		}
		to[i] = byte(n)
	}
	return true
}

// parseIPv6 reads the text form of RFC 4291, without a zone.
func parseIPv6(s string) (addr [16]byte, ok bool) {
	head, tail, gap := strings.Cut(s, "::")
	a, ok1 := hextets(head, !gap)
	b, ok2 := hextets(tail, true)
	if !ok1 || !ok2 || gap && len(a)+len(b) > 14 || !gap && len(a) != 16 {
		return addr, false
	}
	copy(addr[:], a)
	copy(addr[16-len(b):], b)
	return addr, true
}

// hextets reads groups of up to four hexadecimal digits; the last may be an IPv4 address where last says so.
func hextets(s string, last bool) (out []byte, ok bool) {
	if s == "" {
		return nil, true
	}
	parts := strings.Split(s, ":")
	for i, p := range parts {
		if last && i == len(parts)-1 && strings.Contains(p, ".") {
			var v4 [4]byte
			if !parseIPv4(v4[:], p) {
				return nil, false
			}
			out = append(out, v4[:]...)
			continue
		}
		n, err := strconv.ParseUint(p, 16, 16)
		if err != nil || len(p) > 4 {
			return nil, false
		}
		out = append(out, byte(n>>8), byte(n))
	}
	return out, len(out) <= 16
}

// masked is addr with only its first bits.
func masked(addr [16]byte, bits int) (out [16]byte) {
	for i := range bits {
		out[i/8] |= addr[i/8] & (0x80 >> (i % 8))
	}
	return out
}

func sameBits(a, b [16]byte, bits int) bool { return masked(a, bits) == masked(b, bits) }

// addressString is the address of h with its network prefix; the longest run of zeros is left out as RFC 5952 has it.
func (h Host) addressString() string {
	prefix := ""
	if h.kind == 4 && h.bits < 32 || h.kind == 6 && h.bits < 128 {
		prefix = "/" + strconv.Itoa(int(h.bits))
	}
	if h.kind == 4 {
		s := strconv.Itoa(int(h.addr[0]))
		for _, b := range h.addr[1:4] {
			s += "." + strconv.Itoa(int(b))
		}
		return s + prefix
	}
	var groups [8]uint16
	from, length := 0, 0
	for i := range groups {
		groups[i] = uint16(h.addr[2*i])<<8 | uint16(h.addr[2*i+1])
		n := 0
		for n <= i && groups[i-n] == 0 {
			n++
		}
		if n > length {
			from, length = i-n+1, n
		}
	}
	s := ""
	for i := 0; i < 8; i++ {
		if length > 1 && i == from {
			s += "::"
			i += length - 1
			continue
		}
		if s != "" && !strings.HasSuffix(s, "::") {
			s += ":"
		}
		s += strconv.FormatUint(uint64(groups[i]), 16)
	}
	return "[" + s + prefix + "]"
}
