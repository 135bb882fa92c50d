package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/google/cel-go/cel"

	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/library"
)

// How long each number is measured, and how many programs are kept to measure their memory.
const (
	measured = 300 * time.Millisecond
	kept     = 200
)

type measurement struct {
	ID      any     `json:"id,omitempty"`
	Compile float64 `json:"compile"` // nanoseconds: parse, check, plan
	Eval    float64 `json:"eval"`    // nanoseconds, with cost tracking as in Kubernetes
	Bytes   float64 `json:"bytes"`   // heap that one program keeps
	Value   string  `json:"value"`
}

// bench measures the questions on standard input.
func bench() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 256<<20)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		var q query
		if err := json.Unmarshal(in.Bytes(), &q); err != nil {
			fail(err)
		}
		m, err := measure(&q)
		if err != nil {
			fail(fmt.Errorf("%s: %w", q.Expr, err))
		}
		if err := out.Encode(m); err != nil {
			fail(err)
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "cannot measure:", err)
	os.Exit(1)
}

func measure(q *query) (*measurement, error) {
	// Whole numbers are int64 here too.
	var exact query
	line, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	if err := decodeNumbers(line, &exact); err != nil {
		return nil, err
	}
	place, err := placeOf(&exact)
	if err != nil {
		return nil, err
	}
	for name := range exact.Bind {
		exact.Bind[name] = integers(exact.Bind[name])
	}
	activation, err := place.activation(&exact)
	if err != nil {
		return nil, err
	}
	compile := func() (cel.Program, error) {
		compiled, issues := place.env.Compile(q.Expr)
		if issues != nil {
			return nil, issues.Err()
		}
		return place.env.Program(compiled, cel.CostLimit(celconfig.PerCallLimit), cel.CostTracking(&library.CostEstimator{}),
			cel.InterruptCheckFrequency(celconfig.CheckFrequency))
	}
	program, err := compile()
	if err != nil {
		return nil, err
	}
	value, _, err := program.ContextEval(context.Background(), activation)
	if err != nil {
		return nil, err
	}

	m := &measurement{ID: q.ID, Value: text(value)}
	m.Compile = perRun(func() { _, _ = compile() })
	m.Eval = perRun(func() { _, _, _ = program.ContextEval(context.Background(), activation) })
	programs := make([]cel.Program, kept)
	before := heap()
	for i := range programs {
		if programs[i], err = compile(); err != nil {
			return nil, err
		}
	}
	m.Bytes = float64(heap()-before) / kept
	runtime.KeepAlive(programs)
	return m, nil
}

func perRun(run func()) float64 {
	for range 20 {
		run()
	}
	count, started := 0, time.Now()
	for time.Since(started) < measured {
		for range 10 {
			run()
		}
		count += 10
	}
	return float64(time.Since(started).Nanoseconds()) / float64(count)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
