package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"slowpath/internal/diagnose/verdict"
)

// lane is one receiver, and what waits for it.
type lane struct {
	Receiver
	client *http.Client
	log    func(string)
	wait   time.Duration
	queue  chan Message

	mu         sync.Mutex
	tokens     float64 // messages that it may get now
	filled     time.Time
	perHour    float64
	last       map[string]Message // that was sent, by incident
	waiting    map[string]int     // messages in the queue and on their way, by incident
	ids        []string           // in order
	stats      Stats
	suppressed int64 // since the last message that was sent
}

func (l *lane) put(m Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, known := l.last[m.ID]
	if known && same(before, m) || !known && l.waiting[m.ID] == 0 && m.Verdict == verdict.Healthy {
		return
	}
	select {
	case l.queue <- m:
		l.waiting[m.ID]++
	default:
		l.drop(fmt.Sprintf("%d messages wait already", maxQueue))
	}
}

// same reports whether a message says what the one before it said.
func same(a, b Message) bool {
	return a.State == b.State && a.Verdict == b.Verdict && a.Cause == b.Cause && a.End.IsZero() == b.End.IsZero()
}

// drop counts a message that is not sent, and says so once. l.mu is held.
func (l *lane) drop(why string) {
	l.stats.Dropped++
	if l.suppressed++; l.suppressed == 1 {
		l.log(fmt.Sprintf("notify: a message to %s was left out: %s", l.Receiver, why))
	}
}

func (l *lane) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			l.flush()
			return
		case m := <-l.queue:
			if l.allowed() {
				l.deliver(ctx, m)
			}
			l.dealtWith(m.ID)
		}
	}
}

// dealtWith forgets that a message waited.
func (l *lane) dealtWith(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting[id]--; l.waiting[id] <= 0 {
		delete(l.waiting, id)
	}
}

// flush tries what waits once more.
func (l *lane) flush() {
	ctx, cancel := context.WithTimeout(context.Background(), lastTry)
	defer cancel()
	for len(l.queue) > 0 {
		if m := <-l.queue; l.allowed() {
			_, err := l.try(ctx, m)
			l.done(m, err)
		}
	}
}

// allowed takes a token: PerHour of them come in an hour.
func (l *lane) allowed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.tokens = min(burst, l.tokens+now.Sub(l.filled).Hours()*l.perHour)
	l.filled = now
	if l.tokens < 1 {
		l.drop(fmt.Sprintf("%.0f per hour were sent", l.perHour))
		return false
	}
	l.tokens--
	return true
}

// deliver tries until it is sent, or will not be.
func (l *lane) deliver(ctx context.Context, m Message) {
	wait := l.wait
	for try := 1; ; try++ {
		after, err := l.try(ctx, m)
		var final *finalError
		if err == nil || try == maxTries || errors.As(err, &final) {
			l.done(m, err)
			return
		}
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTry)
			_, err := l.try(last, m)
			cancel()
			l.done(m, err)
			return
		case <-time.After(min(max(wait, after), maxWait)):
		}
		wait *= 2
	}
}

// done counts a message that was sent, or given up.
func (l *lane) done(m Message, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.stats.Failed++
		l.stats.LastError, l.stats.Error = time.Now(), err.Error()
		l.log(fmt.Sprintf("notify: %s did not take the message of incident %s: %v", l.Receiver, m.ID, err))
		return
	}
	if l.suppressed > 0 {
		l.log(fmt.Sprintf("notify: %s takes messages again; %d were left out", l.Receiver, l.suppressed))
		l.suppressed = 0
	}
	l.stats.Sent++
	l.stats.LastSuccess = time.Now()
	if _, known := l.last[m.ID]; !known {
		l.ids = append(l.ids, m.ID)
	}
	l.last[m.ID] = m
	if len(l.ids) > maxIncidents {
		delete(l.last, l.ids[0])
		l.ids = append([]string(nil), l.ids[1:]...)
	}
}

// finalError is one that another try does not change.
type finalError struct{ error }

// try sends a message once. after is how long the receiver asked to wait before the next try.
func (l *lane) try(ctx context.Context, m Message) (after time.Duration, err error) {
	l.mu.Lock()
	var before *Message
	if b, known := l.last[m.ID]; known {
		before = &b
	}
	l.mu.Unlock()
	body, err := m.payload(l.Format, before, time.Now())
	if err != nil {
		return 0, &finalError{err}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.URL.String(), bytes.NewReader(body))
	if err != nil {
		return 0, &finalError{errors.New("its address cannot be used")}
	}
	for name, values := range l.Header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "slowpath")
	resp, err := l.client.Do(req)
	if err != nil {
		return 0, withoutAddress(err)
	}
	defer resp.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	l.mu.Lock()
	l.stats.Bytes += int64(len(body))
	l.mu.Unlock()
	return answer(resp, text(string(said)))
}

// answer makes of a response what follows from it.
func answer(resp *http.Response, said string) (time.Duration, error) {
	switch code := resp.StatusCode; {
	case code < 300:
		return 0, nil
	case code < 400:
		to := "another address"
		if u, err := resp.Location(); err == nil {
			to = u.Host
		}
		return 0, &finalError{fmt.Errorf("it redirects to %s, which is not followed: give the address that it leads to",
			text(to))}
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return time.Duration(min(max(seconds, 0), 3600)) * time.Second, fmt.Errorf("HTTP %d %.100s", code, said)
	default:
		return 0, &finalError{fmt.Errorf("HTTP %d %.100s", code, said)}
	}
}

// withoutAddress is an error of the client without the address, which may be secret.
func withoutAddress(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var cert *tls.CertificateVerificationError
	if errors.As(err, &cert) {
		return &finalError{err}
	}
	return err
}
