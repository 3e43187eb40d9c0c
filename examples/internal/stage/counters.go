package stage

import "hash/maphash"

// counters count events by key in a memory that does not grow with the keys. They may count too much,
// and hardly ever do while the keys are fewer than a million. They are not safe for concurrent use.
type counters struct {
	seed maphash.Seed
	rows [2][]int32
}

// counterSlots are the slots of a row.
const counterSlots = 1 << 16

func newCounters() counters {
	return counters{maphash.MakeSeed(), [2][]int32{make([]int32, counterSlots), make([]int32, counterSlots)}}
}

// slots returns where a key is counted.
func (c *counters) slots(key string) (first, second *int32) {
	hash := maphash.String(c.seed, key)
	return &c.rows[0][hash%counterSlots], &c.rows[1][hash>>32%counterSlots]
}

func (c *counters) add(key string) {
	first, second := c.slots(key)
	*first++
	*second++
}

func (c *counters) of(key string) int {
	first, second := c.slots(key)
	return int(min(*first, *second))
}
