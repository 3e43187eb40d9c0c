package replay

import (
	"slices"
	"strconv"
)

// pager leads to the pages of a list.
type pager struct {
	Page, Last int    // from 1
	Link       string // address of a page, up to its number; "" means buttons of a form
}

// pageOf returns the part of a list for a page number from an address. An invalid or missing number
// means the first page: lists shrink when they are filtered.
func pageOf[T any](list []T, number string, size int) (part []T, p pager) {
	p.Last = max((len(list)+size-1)/size, 1)
	var err error
	if p.Page, err = strconv.Atoi(number); err != nil || p.Page < 1 || p.Page > p.Last {
		p.Page = 1
	}
	return list[(p.Page-1)*size : min(p.Page*size, len(list))], p
}

// turn is a link to a page.
type turn struct {
	Page  int
	Label string
}

// Turns returns the links: to the pages next to this one, the first, the last, and those that divide
// the list into quarters, so that no page of a long list is far.
func (p pager) Turns() (turns []turn) {
	if p.Last == 1 {
		return nil
	}
	numbers := []int{1, p.Last, p.Last / 4, p.Last / 2, p.Last * 3 / 4}
	for n := p.Page - 2; n <= p.Page+2; n++ {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	if p.Page > 1 {
		turns = append(turns, turn{p.Page - 1, "‹ Before"})
	}
	for _, n := range slices.Compact(numbers) {
		if 1 <= n && n <= p.Last {
			turns = append(turns, turn{n, number(n)})
		}
	}
	if p.Page < p.Last {
		turns = append(turns, turn{p.Page + 1, "More ›"})
	}
	return turns
}

// At returns the address of a page.
func (p pager) At(page int) string { return p.Link + strconv.Itoa(page) }
