// Package holdfast is a small client of holdfast's HTTP API: locks that renew themselves. It is an example of a client that was written from
// docs/write-a-client.md alone, with the standard library.
//
// Each lock believes in its lease no longer than the service's answers prove, sends every request again under the same lease id, and cancels
// what it leaves. It has no runs, no limits and no sets.
package holdfast

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The errors of a lock that is held by others until the wait is over, and of one that was held and is lost.
var (
	ErrBusy = errors.New("the key is held by others")
	ErrLost = errors.New("the lease was lost: another may have had it since")
)

const (
	// least is the shortest time for which a request is sent again without an answer, and the time of one try at most.
	least    = 3 * time.Second
	maxPause = time.Second
)

var keys = regexp.MustCompile(`^[A-Za-z0-9._:~-]{1,200}$`)

// Problem is an answer that is no success. A Definite one certainly did not happen.
type Problem struct {
	Code         string
	Detail       string
	Definite     bool
	Retry        string
	RetryAfterMs int64
	// AboveMs and ServerTimeMs are the times by which the next lease id is made.
	AboveMs      int64 `json:"leaseIdAboveMs"`
	ServerTimeMs int64
}

func (p *Problem) Error() string { return p.Code + ": " + p.Detail }

// noAnswer says nothing about whether the request was carried out.
func noAnswer(detail string) *Problem {
	return &Problem{Code: "unavailable", Detail: detail, Retry: "same"}
}

// Client calls one service. Goroutines may share it.
type Client struct {
	// URL of the service, without a slash at its end.
	URL string
	// Owner is a label for people.
	Owner string
	// Token returns the bearer token of each request; nil for none.
	Token func() (string, error)
	// Now is the wall clock; nil for time.Now.
	Now func() time.Time

	// offsetMs is how far the service's clock is ahead, if it refused an id for its time.
	offsetMs atomic.Int64
}

// A redirect is no answer: what it names gets no lease id and no token.
var transport = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// lease is an answer of the service. A member that it lacks is nil.
type lease struct {
	Key, LeaseID                                     string
	RemainingMs, RenewAfterMs, FencingToken, LeaseMs *int64
	State                                            string
	RetryAfterMs                                     int64
	// leaseState is how a release ended.
	leaseState string
}

// Lock is a lock that is held, or was.
type Lock struct {
	Key          string
	FencingToken int64

	client *Client
	id     string
	length time.Duration
	ended  chan struct{}
	lost   chan struct{}

	mutex sync.Mutex
	// The lease lasts so long from the request that was answered, by the clock that shows more: one may be set, the other may stand still.
	sent, sentWall   time.Time
	lasts, renewable time.Duration
	over             bool
}

// Acquire waits for the key for up to wait, and renews the lock from then on. Errors: ErrBusy, *Problem, or the context's. A process that
// dies keeps the key for the rest of the length, which is a second at least.
func (c *Client) Acquire(ctx context.Context, key string, length, wait time.Duration) (*Lock, error) {
	if !keys.MatchString(key) || key == "." || key == ".." {
		return nil, &Problem{Code: "invalid-request", Detail: "the key is 1 to 200 characters of A-Z a-z 0-9 . _ : ~ -", Definite: true}
	}
	lock := &Lock{Key: key, client: c, length: length, ended: make(chan struct{}), lost: make(chan struct{})}
	err := lock.acquire(ctx, time.Now(), wait)
	if err != nil {
		// It may be granted, or have a place in the queue.
		lock.cancel()
		return nil, err
	}
	go lock.keep()
	return lock, nil
}

func (l *Lock) acquire(ctx context.Context, began time.Time, wait time.Duration) error {
	end := began.Add(wait)
	l.id = l.client.newID(0)
	for try := 0; ; try++ {
		pause, until, asked := backoff(try), end, time.Now()
		answer, problem := l.ask(ctx, wait > 0)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case problem == nil && answer.State == "waiting":
			pause, problem = time.Duration(answer.RetryAfterMs)*time.Millisecond, &Problem{Code: "locked"}
		case problem == nil && (l.left() >= l.renewable || l.renew(ctx) == nil) && l.left() > 0:
			l.FencingToken = *answer.FencingToken
			return nil
		case problem == nil || problem.Retry == "same":
			// Nobody knows if it is held, or it is nearly over.
			until = later(end, began.Add(least))
		case problem.Retry == "new-lease":
			if problem.Code == "lease-id-time" {
				l.client.offsetMs.Store(problem.ServerTimeMs - l.client.now().UnixMilli())
			}
			l.id, until = l.client.newID(problem.AboveMs), later(end, began.Add(least))
		case problem.Retry == "later":
			pause = max(pause, time.Duration(problem.RetryAfterMs)*time.Millisecond)
		default:
			return problem
		}
		// The last request is sent at the end: what is free by then is granted.
		left := until.Sub(asked)
		if left <= 0 && problem != nil && problem.Code == "locked" {
			return ErrBusy
		} else if left <= 0 && problem != nil {
			return problem
		} else if left <= 0 {
			return noAnswer("the lease was nearly over")
		}
		sleep(ctx, min(pause, maxPause, time.Until(until)))
	}
}

// ask sends the acquire once.
func (l *Lock) ask(ctx context.Context, queues bool) (*lease, *Problem) {
	body := map[string]any{"leaseMs": max(l.length, time.Second).Milliseconds(), "owner": l.client.Owner}
	return l.proven(ctx, least, "PUT", "", body, queues)
}

func (l *Lock) renew(ctx context.Context) error {
	// No answer is waited for past the end of the lease, and a renewal that gets none leaves time for others.
	limit := min(l.left(), max(l.length/4, time.Second/2), least)
	if _, problem := l.proven(ctx, limit, "POST", "/renew", map[string]any{}, false); problem != nil {
		return problem
	}
	return nil
}

// proven sends a request for this lease, and takes what its answer proves. An answer about another key or lease proves nothing.
func (l *Lock) proven(ctx context.Context, limit time.Duration, method, suffix string, body any, queues bool) (*lease, *Problem) {
	sent, sentWall := time.Now(), l.client.now()
	answer, problem := l.send(ctx, limit, method, suffix, body, queues)
	if problem != nil || (answer.State == "waiting" && queues) {
		return answer, problem
	}
	hasAll := answer.RemainingMs != nil && answer.RenewAfterMs != nil && answer.FencingToken != nil && answer.LeaseMs != nil
	if answer.Key != l.Key || answer.LeaseID != l.id || !hasAll {
		return nil, noAnswer(method + ": the answer is none to this request")
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.sent, l.sentWall = sent, sentWall
	l.renewable = time.Duration(*answer.RenewAfterMs) * time.Millisecond
	// Never longer than was asked for. Clocks may run at rates that differ by a hundredth.
	lasts := min(time.Duration(*answer.RemainingMs)*time.Millisecond, max(l.length, time.Second))
	l.lasts = lasts - max(lasts/100, 50*time.Millisecond)
	return answer, nil
}

// keep renews the lease until it is released or lost. Nothing else ends it.
func (l *Lock) keep() {
	for pause := l.renewable; ; {
		select {
		case <-l.ended:
			return
		case <-time.After(max(min(pause, l.left()/2), 20*time.Millisecond)):
		}
		if l.left() <= 0 {
			break
		}
		err, problem := l.renew(context.Background()), (*Problem)(nil)
		if errors.As(err, &problem) && problem.Code == "lease-lost" {
			break
		}
		pause = l.renewable
		if err != nil {
			pause = min(pause/4, maxPause)
		}
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	select {
	case <-l.ended:
	default:
		l.over = true
		close(l.lost)
	}
}

// left returns for how long the lease is sure.
func (l *Lock) left() time.Duration {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.over {
		return 0
	}
	return l.lasts - max(time.Since(l.sent), l.client.now().Sub(l.sentWall))
}

// Held is true if the lock is held for certain. Ask before each side effect: it sends nothing.
func (l *Lock) Held() bool { return l.left() > 0 }

// Lost is closed when the lease is lost while the lock is held.
func (l *Lock) Lost() <-chan struct{} { return l.lost }

// Release gives the key up. ErrLost: the lease was lost before. Without an answer it is sent again until the lease is over, also after the
// context is done, which ends only the wait of the caller.
func (l *Lock) Release(ctx context.Context) error {
	wasHeld, rest := l.Held(), max(l.left(), time.Second)
	l.mutex.Lock()
	l.over = true
	select {
	case <-l.ended:
	default:
		close(l.ended)
	}
	l.mutex.Unlock()
	done := make(chan error, 1)
	go func() {
		answer, problem := l.delete(rest)
		switch {
		case problem != nil:
			done <- problem
		case wasHeld && (answer.leaseState == "released" || answer.leaseState == "expired"):
			done <- nil
		default:
			done <- ErrLost
		}
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// cancel ends a request of unknown outcome, or leaves the queue. Without an answer the lease ends by itself.
func (l *Lock) cancel() { _, _ = l.delete(least) }

// delete ends the lease, and asks again until the service has answered.
func (l *Lock) delete(limit time.Duration) (*lease, *Problem) {
	end := time.Now().Add(limit)
	for try := 0; ; try++ {
		answer, problem := l.send(context.Background(), min(time.Until(end), least), "DELETE", "", nil, false)
		if problem == nil || problem.Retry == "never" || time.Until(end) <= backoff(try) {
			return answer, problem
		}
		time.Sleep(backoff(try))
	}
}

// send sends a request once. Only a problem document is a refusal of the service; everything else that is no success is a gateway's.
func (l *Lock) send(ctx context.Context, limit time.Duration, method, suffix string, body any, queues bool) (*lease, *Problem) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	content := []byte{}
	if body != nil {
		content, _ = json.Marshal(body)
	}
	request, err := http.NewRequestWithContext(ctx, method, l.client.URL+"/v1/locks/"+l.Key+"/leases/"+l.id+suffix, bytes.NewReader(content))
	if err != nil {
		return nil, noAnswer("the URL of the service can't be read")
	}
	if body != nil {
		request.Header.Set("content-type", "application/json")
	}
	if queues {
		request.Header.Set("prefer", "wait=5")
	}
	if l.client.Token != nil {
		token, err := l.client.Token()
		if err != nil {
			return nil, noAnswer("the token can't be had")
		}
		request.Header.Set("authorization", "Bearer "+token)
	}
	response, err := transport.Do(request)
	if err != nil {
		return nil, noAnswer(method + ": no answer" + cause(err))
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return nil, noAnswer(method + ": the answer was cut")
	}
	if response.StatusCode >= 300 {
		problem := &Problem{}
		isProblem := strings.HasPrefix(response.Header.Get("content-type"), "application/problem+json")
		// A retryAfterMs of null stays 0.
		if isProblem && json.Unmarshal(text, problem) == nil && problem.Code != "" {
			return nil, problem
		}
		return nil, noAnswer(fmt.Sprintf("%s: a gateway answered %d", method, response.StatusCode))
	}
	answer := &lease{leaseState: response.Header.Get("lease-state")}
	if method == "DELETE" && answer.leaseState == "" || method != "DELETE" && json.Unmarshal(text, answer) != nil {
		return nil, noAnswer(method + ": the answer is not the service's")
	}
	return answer, nil
}

// cause names an error without its URL, which has the lease id.
func cause(err error) string {
	inner := (*url.Error)(nil)
	if errors.As(err, &inner) && inner.Timeout() {
		return " in time"
	}
	return ""
}

// newID returns a UUIDv7 by the service's clock, above a time. It proves the hold: never log it.
func (c *Client) newID(aboveMs int64) string {
	random := make([]byte, 9)
	_, _ = rand.Read(random)
	t, r := fmt.Sprintf("%012x", max(c.now().UnixMilli()+c.offsetMs.Load(), aboveMs+1)), fmt.Sprintf("%x", random)
	return t[:8] + "-" + t[8:] + "-7" + r[:3] + "-8" + r[3:6] + "-" + r[6:]
}

// now returns the time of the wall clock alone: Round takes the monotonic one away.
func (c *Client) now() time.Time {
	if c.Now != nil {
		return c.Now().Round(0)
	}
	return time.Now().Round(0)
}

func backoff(try int) time.Duration { return min(maxPause, 40*time.Millisecond<<min(try, 8)) }

func later(one, other time.Time) time.Time {
	if one.After(other) {
		return one
	}
	return other
}

func sleep(ctx context.Context, pause time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
}
