"""What is given to xenalyze in comparisons with it."""

import struct
import tempfile


def without_guest_records(path):
    """xenalyze does not end on records of class TRC_GUEST: a copy without them, or the file."""
    data = open(path, 'rb').read()
    out = bytearray()
    at, found = 0, False
    while at + 12 <= len(data):
        header, pcpu, size = struct.unpack_from('<III', data, at)
        if header & 0x0fffffff != 0x1f003:
            break
        window = bytearray()
        here, end = at + 12, min(at + 12 + size, len(data))
        while here < end:
            word, = struct.unpack_from('<I', data, here)
            length = 4 + 8 * (word >> 31) + 4 * (word >> 28 & 7)
            if (word & 0x0fffffff) >> 12 == 0x800f:
                found = True
            else:
                window += data[here:here + length]
            here += length
        out += struct.pack('<III', header, pcpu, len(window)) + window
        at += 12 + size
    if not found:
        return path, None
    copy = tempfile.NamedTemporaryFile(suffix='.trace')
    copy.write(out)
    copy.flush()
    return copy.name, copy
