package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

// place is where an expression stands: what it sees and how it is estimated.
type place struct {
	env       *cel.Env
	estimator checker.CostEstimator
	// bind adds the values of the place's own variables; compile gives the refusal of upstream's own compiler.
	bind    func(q *query, values map[string]any) error
	compile func(expression string) string
}

var places sync.Map

// placeOf builds the place of a question, or takes it from earlier ones that declare the same.
func placeOf(q *query) (*place, error) {
	key, err := json.Marshal([]any{q.Env, q.Stored, q.Compat, q.Vars, q.Returns, q.Schema, q.Root, q.OptionalOldSelf,
		q.Params, q.Authorizer, q.Patch, q.Variables, q.Features})
	if err != nil {
		return nil, err
	}
	if found, ok := places.Load(string(key)); ok {
		return found.(*place), nil
	}
	made, err := makePlace(q)
	if err != nil {
		return nil, err
	}
	places.Store(string(key), made)
	return made, nil
}

func makePlace(q *query) (*place, error) {
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	if q.Compat != "" {
		base = environment.MustBaseEnvSet(version.MustParseGeneric(q.Compat))
	}
	var options []cel.EnvOption
	for name, typeText := range q.Vars {
		t, err := parseType(typeText)
		if err != nil {
			return nil, err
		}
		options = append(options, cel.Variable(name, t))
	}
	if len(options) > 0 {
		var err error
		if base, err = extend(base, options); err != nil {
			return nil, err
		}
	}

	switch q.Env {
	case "base", "":
		return placed(q, base, nil)
	case "crd":
		return crdPlace(q, base)
	case "admission":
		return admissionPlace(q, base)
	case "claims":
		return claimsPlace(q, base)
	case "user":
		return userPlace(q, base)
	case "authorization":
		return authorizationPlace(q, base)
	case "device":
		return devicePlace(q)
	}
	return nil, fmt.Errorf("unknown env %q", q.Env)
}

func placed(q *query, set *environment.EnvSet, root *apiservercel.DeclType) (*place, error) {
	env := set.NewExpressionsEnv()
	if q.Stored {
		env = set.StoredExpressionsEnv()
	}
	return &place{env: env, estimator: &library.CostEstimator{SizeEstimator: &sizer{root}}}, nil
}

func extend(set *environment.EnvSet, options []cel.EnvOption, declared ...*apiservercel.DeclType) (*environment.EnvSet, error) {
	return set.Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        options,
		DeclTypes:         declared,
	})
}

// activation is what the variables are bound to: JSON values, values of expressions, and the place's own.
func (p *place) activation(q *query) (map[string]any, error) {
	values := map[string]any{}
	for name, value := range q.Bind {
		values[name] = value
	}
	for name, expression := range q.Let {
		value, err := evaluate(expression)
		if err != nil {
			return nil, fmt.Errorf("let %s: %w", name, err)
		}
		values[name] = value
	}
	if p.bind != nil {
		if err := p.bind(q, values); err != nil {
			return nil, err
		}
	}
	return values, nil
}

var lets sync.Map

func evaluate(expression string) (ref.Val, error) {
	if found, ok := lets.Load(expression); ok {
		return found.(ref.Val), nil
	}
	env := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).StoredExpressionsEnv()
	compiled, issues := env.Compile(expression)
	if issues != nil {
		return nil, issues.Err()
	}
	program, err := env.Program(compiled)
	if err != nil {
		return nil, err
	}
	value, _, err := program.Eval(map[string]any{})
	if err == nil {
		lets.Store(expression, value)
	}
	return value, err
}

// sizer knows how large what a path leads to can be, from the declared type of the first variable.
type sizer struct{ root *apiservercel.DeclType }

func (s *sizer) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	if len(element.Path()) == 0 || s.root == nil {
		return nil
	}
	at := s.root
	for _, name := range element.Path()[1:] {
		switch name {
		case "@items", "@values":
			at = at.ElemType
		case "@keys":
			at = at.KeyType
		default:
			field, ok := at.Fields[name]
			if !ok {
				return nil
			}
			at = field.Type
		}
		if at == nil {
			return nil
		}
	}
	return &checker.SizeEstimate{Min: 0, Max: uint64(at.MaxElements)}
}

func (s *sizer) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

// parseType reads a type as messages print it: list(string), map(string, int), optional_type(T), net.IP, …
func parseType(text string) (*cel.Type, error) {
	text = strings.TrimSpace(text)
	name, rest, hasParameters := strings.Cut(text, "(")
	var parameters []*cel.Type
	if hasParameters {
		for _, part := range splitTypes(strings.TrimSuffix(rest, ")")) {
			t, err := parseType(part)
			if err != nil {
				return nil, err
			}
			parameters = append(parameters, t)
		}
	}
	switch {
	case name == "list" && len(parameters) == 1:
		return cel.ListType(parameters[0]), nil
	case name == "map" && len(parameters) == 2:
		return cel.MapType(parameters[0], parameters[1]), nil
	case name == "optional_type" && len(parameters) == 1:
		return cel.OptionalType(parameters[0]), nil
	case name == "type" && len(parameters) == 1:
		return types.NewTypeTypeWithParam(parameters[0]), nil
	}
	if t, ok := simpleTypes[name]; ok && !hasParameters {
		return t, nil
	}
	return nil, fmt.Errorf("unknown type %q", text)
}

func splitTypes(text string) (parts []string) {
	depth, start := 0, 0
	for i, c := range text {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				parts, start = append(parts, text[start:i]), i+1
			}
		}
	}
	return append(parts, text[start:])
}

var simpleTypes = map[string]*cel.Type{
	"bool": cel.BoolType, "int": cel.IntType, "uint": cel.UintType, "double": cel.DoubleType, "string": cel.StringType,
	"bytes": cel.BytesType, "null": cel.NullType, "timestamp": cel.TimestampType, "duration": cel.DurationType,
	"dyn": cel.DynType, "any": cel.AnyType, "type": cel.TypeType,
	"net.IP": apiservercel.IPType, "net.CIDR": apiservercel.CIDRType, "kubernetes.URL": apiservercel.URLType,
	"kubernetes.Quantity": apiservercel.QuantityType, "kubernetes.Semver": apiservercel.SemverType,
	"kubernetes.NamedFormat":                 apiservercel.FormatType,
	"kubernetes.authorization.Authorizer":    library.AuthorizerType,
	"kubernetes.authorization.PathCheck":     library.PathCheckType,
	"kubernetes.authorization.GroupCheck":    library.GroupCheckType,
	"kubernetes.authorization.ResourceCheck": library.ResourceCheckType,
	"kubernetes.authorization.Decision":      library.DecisionType,
}
