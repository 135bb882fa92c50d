package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	authorizationv1 "k8s.io/api/authorization/v1"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// claimsPlace is a claim mapping or validation rule of structured authentication; bind has `claims`.
func claimsPlace(q *query, base *environment.EnvSet) (*place, error) {
	claims := apiservercel.NewMapType(apiservercel.StringType, apiservercel.AnyType, -1)
	set, err := extend(base, []cel.EnvOption{cel.Variable("claims", claims.CelType())}, claims)
	if err != nil {
		return nil, err
	}
	made, err := placed(q, set, nil)
	if err != nil {
		return nil, err
	}
	made.bind = func(q *query, values map[string]any) error {
		if claims, ok := values["claims"]; ok {
			values["claims"] = unescaping(types.DefaultTypeAdapter.NativeToValue(claims))
		}
		return nil
	}
	made.compile, err = authenticationCompiler(q, authenticationcel.NewCompiler(base).CompileClaimsExpression)
	return made, err
}

// userPlace is a user validation rule of structured authentication; bind has `user`.
func userPlace(q *query, base *environment.EnvSet) (*place, error) {
	user := object("kubernetes.UserInfo", userFields)
	set, err := extend(base, []cel.EnvOption{cel.Variable("user", user.CelType())}, user)
	if err != nil {
		return nil, err
	}
	made, err := placed(q, set, nil)
	if err != nil {
		return nil, err
	}
	made.bind = func(q *query, values map[string]any) error {
		if user, ok := values["user"]; ok {
			values["user"] = unescaping(types.DefaultTypeAdapter.NativeToValue(user))
		}
		return nil
	}
	made.compile, err = authenticationCompiler(q, authenticationcel.NewCompiler(base).CompileUserExpression)
	return made, err
}

func authenticationCompiler(q *query, compile func(authenticationcel.ExpressionAccessor) (authenticationcel.CompilationResult, error)) (func(string) string, error) {
	if q.Returns == nil {
		return nil, nil
	}
	returns, err := returnTypes(q.Returns)
	if err != nil {
		return nil, err
	}
	return func(expression string) string {
		if _, err := compile(accessor{expression, returns}); err != nil {
			return err.Error()
		}
		return ""
	}, nil
}

// unescaping finds members by their escaped name too (a__dot__b for a.b), at any depth.
func unescaping(v ref.Val) ref.Val {
	switch x := v.(type) {
	case traits.Mapper:
		return &unescapingMap{x}
	case traits.Lister:
		return &unescapingList{x}
	}
	return v
}

type unescapingMap struct{ traits.Mapper }

func (m *unescapingMap) Find(key ref.Val) (ref.Val, bool) {
	if name, ok := key.(types.String); ok {
		if plain, ok := apiservercel.Unescape(string(name)); ok {
			key = types.String(plain)
		}
	}
	value, found := m.Mapper.Find(key)
	return unescaping(value), found
}

type unescapingList struct{ traits.Lister }

func (l *unescapingList) Get(index ref.Val) ref.Val { return unescaping(l.Lister.Get(index)) }

// authorizationPlace is a match condition of an authorization webhook; bind has `request`. With review (the spec of
// a SubjectAccessReview), upstream's own matcher is asked too.
func authorizationPlace(q *query, base *environment.EnvSet) (*place, error) {
	requirement := object("kubernetes.SelectorRequirement", declarations{"key": text1, "operator": text1, "values": texts})
	requirements := apiservercel.NewListType(requirement, -1)
	selector := func(name string) *apiservercel.DeclType {
		return object(name, declarations{"rawSelector": text1, "requirements": requirements})
	}
	request := object("kubernetes.SubjectAccessReviewSpec", declarations{
		"resourceAttributes": object("kubernetes.ResourceAttributes", declarations{
			"namespace": text1, "verb": text1, "group": text1, "version": text1, "resource": text1, "subresource": text1, "name": text1,
			"fieldSelector": selector("kubernetes.FieldSelectorAttributes"), "labelSelector": selector("kubernetes.LabelSelectorAttributes"),
		}),
		"nonResourceAttributes": object("kubernetes.NonResourceAttributes", declarations{"path": text1, "verb": text1}),
		"user":                  text1, "groups": texts, "extra": textLists, "uid": text1,
	})
	set, err := extend(base, []cel.EnvOption{cel.Variable("request", request.CelType())}, request)
	if err != nil {
		return nil, err
	}
	made, err := placed(q, set, nil)
	if err != nil {
		return nil, err
	}
	if q.Returns != nil {
		returns, err := returnTypes(q.Returns)
		if err != nil {
			return nil, err
		}
		compiler := authorizationcel.NewCompiler(base)
		made.compile = func(expression string) string {
			if _, err := compiler.CompileCELExpression(accessor{expression, returns}); err != nil {
				return err.Error()
			}
			return ""
		}
	}
	return made, nil
}

// reviewed asks upstream's matcher whether the condition holds for a review.
func reviewed(q *query) (bool, error) {
	var review authorizationv1.SubjectAccessReview
	if err := json.Unmarshal(q.Review, &review.Spec); err != nil {
		return false, fmt.Errorf("review: %w", err)
	}
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	compiled, err := authorizationcel.NewCompiler(base).CompileCELExpression(accessor{q.Expr, []*cel.Type{cel.BoolType}})
	if err != nil {
		return false, err
	}
	matcher := authorizationcel.CELMatcher{
		CompilationResults: []authorizationcel.CompilationResult{compiled},
		UsesFieldSelector:  compiled.UsesFieldSelector, UsesLabelSelector: compiled.UsesLabelSelector,
	}
	return matcher.Eval(context.Background(), &review)
}

type declarations map[string]*apiservercel.DeclType

var (
	text1      = apiservercel.StringType
	texts      = apiservercel.NewListType(text1, -1)
	textLists  = apiservercel.NewMapType(text1, texts, -1)
	userFields = declarations{"username": text1, "uid": text1, "groups": texts, "extra": textLists}
)

func object(name string, members declarations) *apiservercel.DeclType {
	fields := map[string]*apiservercel.DeclField{}
	for member, t := range members {
		fields[member] = apiservercel.NewDeclField(member, t, false, nil, nil)
	}
	return apiservercel.NewObjectType(name, fields)
}
