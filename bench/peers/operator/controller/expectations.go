package controller

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// expectations are pods that were created and that the cache has yet to show; until it does they are not missing.
// Kept by the UID of their job.
type expectations struct {
	lock sync.Mutex
	of   map[types.UID]map[int]bool
}

func (e *expectations) created(job types.UID, rank int) {
	e.lock.Lock()
	defer e.lock.Unlock()
	if e.of == nil {
		e.of = map[types.UID]map[int]bool{}
	}
	if e.of[job] == nil {
		e.of[job] = map[int]bool{}
	}
	e.of[job][rank] = true
}

// unexpected drops what the cache shows by now, and returns those of the missing ranks that are really missing.
func (e *expectations) unexpected(job types.UID, pods gang) []int {
	e.lock.Lock()
	defer e.lock.Unlock()
	var missing []int
	for rank, pod := range pods {
		switch {
		case pod != nil:
			delete(e.of[job], rank)
		case !e.of[job][rank]:
			missing = append(missing, rank)
		}
	}
	if len(e.of[job]) == 0 {
		delete(e.of, job)
	}
	return missing
}
