"""Which GPU a run may have now: what each holds, the busy rule, leases that a whole host respects, and masks."""
