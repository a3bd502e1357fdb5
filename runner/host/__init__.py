"""Facts of this machine: accelerators, Python and torch, Quark, paths, disk."""
