/* Hand-overs: a thread that gives a connection back to its pool wakes the one that waited for it. The sleep before that
 * was the wait for a connection. */
#ifndef SLOWPATH_HANDOVERS_H
#define SLOWPATH_HANDOVERS_H

/* Where one thread reads and sends for all (an event loop, as of Netty), those who wait for a connection never use it.
 * But the loop wakes each when its reply is there. By how many threads it wakes it is known for how many it works:
 * served has a bit for the number of each, modulo 64. */

/* takes notes that a thread uses a connection: it sends a request, or first reads its reply. If another thread read
 * from it last, it was handed over if that thread had woken this one after it had read. Threads wake each other for
 * other reasons, too:
 *
 * - The lock of an interpreter is free while its owner waits for a reply. One who waited for a connection slept through
 *   the whole call of the thread before. It may have had to wait for that lock, too, when it had the connection.
 * - Two threads that take turns (a future and its result) may use the same connection. One that waits in a queue comes
 *   after others than itself.
 * - A thread may wake a worker that had nothing to do. That happens now and then; where threads queue, most turns are
 *   hand-overs. So one is counted where more of the turns before it were than were not, of the last few. */
enum { MOST_QUEUED = 3 };

static __always_inline void takes(struct conn *c, struct thread *t, u32 slot)
{
	u32 from = c->slot;
	if (!t)
		return;
	if (t->caller.has_read)
		done_reading(t);
	if (t->wakes) {
		c->served |= t->wakes;
		t->wakes = 0;
	}
	if (from == slot)
		return;
	struct thread *giver = thread_of(from);
	if (!giver)
		return;
	u64 since = slept_itself(t) ? 0 : t->caller.lock_since;
	bool handed = since && since < c->in_flight_since && t->woken > c->last_in &&
		      t->caller.wakers & 1ull << (giver->pid & 63) && c->slot_before != slot;
	c->turns++;
	if (handed) /* another one's call */
		end_chain(c);
	if (handed && c->queued) {
		u64 waited = t->woken - since;
		t->caller.wanted = since;
		c->handed++;
		c->waited_ns += waited;
		if (waited > c->waited_max)
			c->waited_max = waited;
		c->kept_ns += t->woken - c->last_in;
	}
	if (handed && c->queued < MOST_QUEUED)
		c->queued++;
	else if (!handed && c->queued)
		c->queued--;
	c->slot_before = from;
}

#endif
