// The client that oapi-codegen generates takes a lock, a run and a limit.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/google/uuid"
)

const key = "generated-go"

func check(holds bool, what ...any) {
	if !holds {
		fmt.Fprintln(os.Stderr, what...)
		os.Exit(1)
	}
}

func leaseID() string { return uuid.Must(uuid.NewV7()).String() }

func ptr[T any](value T) *T { return &value }

func main() {
	ctx := context.Background()
	client, err := NewClientWithResponses(os.Getenv("HOLDFAST_URL"))
	check(err == nil, err)

	id := leaseID()
	held, err := client.AcquireWithResponse(ctx, key, id, nil, AcquireRequest{LeaseMs: ptr(5000), Meta: &map[string]any{"step": 1.0}})
	check(err == nil && held.JSON201 != nil && held.JSON201.LeaseId == id && (*held.JSON201.Meta)["step"] == 1.0, "acquire", err, held)
	refused, err := client.AcquireWithResponse(ctx, key, leaseID(), nil, AcquireRequest{})
	check(err == nil && refused.ApplicationproblemJSON423 != nil && refused.ApplicationproblemJSON423.Code == "locked", "acquire again", err, refused)
	released, err := client.ReleaseWithResponse(ctx, key, id)
	check(err == nil && released.HTTPResponse.Header.Get("Lease-State") == "released", "release", err, released)

	started, err := client.StartWithResponse(ctx, key, id, nil, StartRequest{Fingerprint: ptr("f")})
	check(err == nil && started.JSON201 != nil && started.JSON201.Attempt == 1, "start", err, started)
	var outcome OutcomeRequest
	check(outcome.FromSucceeded(Succeeded{State: "succeeded", Result: map[string]any{"sent": 3}}) == nil, "an outcome")
	recorded, err := client.CompleteWithResponse(ctx, key, id, outcome)
	check(err == nil && recorded.StatusCode() == 200, "complete", err, recorded)
	again, err := client.StartWithResponse(ctx, key, leaseID(), nil, StartRequest{Fingerprint: ptr("f")})
	check(err == nil && again.JSON200 != nil, "start again", err, again)
	value, err := again.JSON200.ValueByDiscriminator()
	replayed, ok := value.(Replayed)
	check(err == nil && ok && fmt.Sprint(replayed.Result) == "map[sent:3]", "the result", err, value)

	take := TakeRequest{Rates: []Rate{{Count: 1, PerMs: 60_000}}}
	taken, err := client.TakeWithResponse(ctx, key, take)
	check(err == nil && taken.JSON200 != nil && taken.JSON200.StartInMs == 0, "take", err, taken)
	limited, err := client.TakeWithResponse(ctx, key, take)
	check(err == nil && limited.ApplicationproblemJSON429 != nil && limited.ApplicationproblemJSON429.Code == "rate-limited", "take again", err, limited)
}
