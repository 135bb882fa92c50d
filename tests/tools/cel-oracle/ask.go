package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/debug"

	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/library"
)

// ask compiles, estimates and evaluates one expression in the environment that the question names.
func ask(q *query, a *answer) {
	for name := range q.Bind {
		q.Bind[name] = integers(q.Bind[name])
	}
	place, err := placeOf(q)
	if err != nil {
		a.Bad = err.Error()
		return
	}
	if place.compile != nil {
		a.Compile = place.compile(q.Expr)
	}

	if q.Review != nil {
		matches, err := reviewed(q)
		a.Matches = &matches
		if err != nil {
			a.Warnings = err.Error()
		}
	}

	if q.Detail {
		if parsed, issues := place.env.Parse(q.Expr); issues.Err() == nil {
			a.Parsed = debug.ToAdornedDebugString(parsed.NativeRep().Expr(), ids{})
		}
	}
	compiled, issues := place.env.Compile(q.Expr)
	if issues != nil {
		a.Errors = issues.String()
		return
	}
	a.Type = compiled.OutputType().String()
	a.AST = debug.ToDebugString(compiled.NativeRep().Expr())
	if q.Detail {
		a.Checked = debug.ToAdornedDebugString(compiled.NativeRep().Expr(), details{compiled.NativeRep()})
	}
	if estimate, err := place.env.EstimateCost(compiled, place.estimator); err != nil {
		a.EstErr = err.Error()
	} else {
		a.Est = &[2]uint64{estimate.Min, estimate.Max}
	}

	limit := q.Limit
	if limit == 0 {
		limit = celconfig.PerCallLimit
	}
	program, err := place.env.Program(compiled, cel.CostLimit(limit), cel.CostTracking(&library.CostEstimator{}),
		cel.InterruptCheckFrequency(celconfig.CheckFrequency))
	if err != nil {
		a.Prog = err.Error()
		return
	}
	activation, err := place.activation(q)
	if err != nil {
		a.Bad = err.Error()
		return
	}
	value, details, err := program.ContextEval(context.Background(), activation)
	if details != nil {
		a.Cost = details.ActualCost()
	}
	if err != nil {
		a.Err = err.Error()
		return
	}
	a.RType = value.Type().TypeName()
	a.Value = text(value)
	a.Result = native(value)
}

// ids adorns each node of a parsed tree with its id.
type ids struct{}

func (ids) GetMetadata(element any) string {
	switch e := element.(type) {
	case ast.Expr:
		return fmt.Sprintf("#%d", e.ID())
	case ast.EntryExpr:
		return fmt.Sprintf("#%d", e.ID())
	}
	return ""
}

// details adorns each node of a checked tree with its id, type and reference, as in cel-go's own checker tests.
type details struct{ checked *ast.AST }

func (d details) GetMetadata(element any) string {
	e, ok := element.(ast.Expr)
	if !ok {
		return ids{}.GetMetadata(element)
	}
	out := fmt.Sprintf("#%d", e.ID())
	if t, ok := d.checked.TypeMap()[e.ID()]; ok {
		out += "~" + checker.FormatCELType(t)
	}
	if r, ok := d.checked.ReferenceMap()[e.ID()]; ok {
		if len(r.OverloadIDs) > 0 {
			out += "^" + strings.Join(r.OverloadIDs, "|")
		} else {
			out += "^" + r.Name
		}
	}
	return out
}

// integers makes whole numbers int64, as Kubernetes' JSON decoder does.
func integers(v any) any {
	switch x := v.(type) {
	case json.Number:
		if i, err := x.Int64(); err == nil {
			return i
		}
		f, _ := x.Float64()
		return f
	case map[string]any:
		for k := range x {
			x[k] = integers(x[k])
		}
	case []any:
		for i := range x {
			x[i] = integers(x[i])
		}
	}
	return v
}
