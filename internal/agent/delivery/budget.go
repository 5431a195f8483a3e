package delivery

import (
	"sync"
	"time"
)

// Budget is how much may be sent: so much per time, and a part of it at once. In any day it is what a day has, and the
// last thing that was sent beyond it.
type Budget struct {
	mu       sync.Mutex
	left     float64
	most     float64
	perHour  float64
	filled   time.Time
	now      func() time.Time
	disabled bool
}

// burstShare is the part of a day's budget that may be sent at once.
const burstShare = 0.1

// NewBudget is one that Units fills.
func NewBudget() *Budget { return &Budget{filled: time.Now(), now: time.Now} }

// Daily is a budget of so many units per day; 0 or less: without a bound.
func Daily(perDay float64) *Budget { return dailyBudget(perDay, time.Now) }

func dailyBudget(perDay float64, now func() time.Time) *Budget {
	return &Budget{
		left: perDay * burstShare, most: perDay * burstShare, perHour: perDay * (1 - burstShare) / 24,
		filled: now(), now: now, disabled: perDay <= 0,
	}
}

// Allows reports whether something may be sent. What was sent is then spent, and may be more than was left.
func (b *Budget) Allows() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill()
	return b.disabled || b.left > 0
}

// halfFull reports whether half of what may be sent at once is left.
func (b *Budget) halfFull() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill()
	return b.disabled || b.left >= b.most/2
}

// Units is how many may be sent, where so many are allowed per minute, and at once.
func (b *Budget) Units(perMinute float64) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill()
	b.left += max(perMinute-b.most, 0)
	b.most, b.perHour = perMinute, 60*perMinute
	b.left = min(b.left, b.most)
	return max(int(b.left), 0)
}

// Spend takes away what was sent.
func (b *Budget) Spend(units float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left -= units
}

// fill adds what the time since the last fill is worth. b.mu is held.
func (b *Budget) fill() {
	now := b.now()
	b.left = min(b.most, b.left+max(now.Sub(b.filled).Hours(), 0)*b.perHour)
	b.filled = now
}
