// The driver of this client for the suite of scenes (docs/write-a-client.md).
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"holdfast"
)

type driver struct {
	client *holdfast.Client
	locks  map[string]*holdfast.Lock
	// The client's goroutines read these too.
	token atomic.Value
	shift atomic.Int64
}

func main() {
	d := &driver{}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		fmt.Println(d.answer(ctx, strings.Split(lines.Text(), " ")))
		stop()
	}
}

func (d *driver) answer(ctx context.Context, words []string) string {
	verb, name := words[0], ""
	if len(words) > 1 {
		name, _ = url.PathUnescape(words[1])
	}
	reply, err := d.carryOut(ctx, verb, name, words)
	problem := (*holdfast.Problem)(nil)
	switch {
	case err == nil:
		return reply
	case errors.Is(err, context.Canceled):
		return "interrupted"
	case errors.Is(err, holdfast.ErrBusy):
		return "busy"
	case errors.Is(err, holdfast.ErrLost):
		return "lost"
	case errors.As(err, &problem) && problem.Definite:
		return "refused " + problem.Code + " definite " + problem.Detail
	}
	return "refused error perhaps " + strings.Join(strings.Fields(err.Error()), " ")
}

func (d *driver) carryOut(ctx context.Context, verb, name string, words []string) (string, error) {
	switch verb {
	case "open":
		d.token.Store("scripted-token-0123456789")
		d.shift.Store(0)
		d.locks = map[string]*holdfast.Lock{}
		now := func() time.Time { return time.Now().Add(time.Duration(d.shift.Load())) }
		d.client = &holdfast.Client{URL: name, Owner: "go", Now: now}
		if slices.Contains(words, "token") {
			d.client.Token = d.giveToken
		}
	case "token":
		d.token.Store(name)
	case "clock":
		d.shift.Store(int64(seconds(name)))
	case "acquire":
		if len(words) != 5 {
			return "can't", nil
		}
		lock, err := d.client.Acquire(ctx, name, seconds(words[2]), seconds(words[4]))
		if err != nil {
			return "", err
		}
		d.locks[name] = lock
		return fmt.Sprintf("granted %d", lock.FencingToken), nil
	case "held?":
		lock := d.locks[name]
		return yes(lock != nil && lock.Held()), nil
	case "lost?":
		select {
		case <-d.locks[name].Lost():
			return yes(true), nil
		default:
			return yes(false), nil
		}
	case "release":
		return "released", d.locks[name].Release(ctx)
	case "close":
		for _, lock := range d.locks {
			if lock.Held() {
				if err := lock.Release(ctx); err != nil {
					return "", err
				}
			}
		}
	default:
		return "can't", nil
	}
	return "ok", nil
}

func (d *driver) giveToken() (string, error) {
	if token := d.token.Load().(string); token != "fails" {
		return token, nil
	}
	return "", errors.New("the token's server is gone")
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

func seconds(word string) time.Duration {
	number, _ := strconv.ParseFloat(strings.TrimSuffix(word, "s"), 64)
	return time.Duration(number * float64(time.Second))
}
