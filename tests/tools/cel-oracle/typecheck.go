package main

import (
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// typecheck answers with the warnings of a policy: spec of a ValidatingAdmissionPolicy in policy. Every resource
// that it names resolves to kind, and every kind to schema (OpenAPI); without schema, to none.
func typecheck(q *query, a *answer) {
	var policy admissionv1.ValidatingAdmissionPolicy
	if err := json.Unmarshal(q.Policy, &policy.Spec); err != nil {
		a.Bad = fmt.Sprintf("policy: %v", err)
		return
	}
	var types *spec.Schema
	if len(q.Schema) > 0 {
		types = &spec.Schema{}
		if err := json.Unmarshal(q.Schema, types); err != nil {
			a.Bad = fmt.Sprintf("schema: %v", err)
			return
		}
	}
	checker := validating.TypeChecker{SchemaResolver: oneSchema{types}, RestMapper: oneKind{kind: q.Kind}}
	a.Warnings = checker.Check(&policy)
}

type oneSchema struct{ schema *spec.Schema }

func (o oneSchema) ResolveSchema(schema.GroupVersionKind) (*spec.Schema, error) {
	if o.schema == nil {
		return nil, resolver.ErrSchemaNotFound
	}
	return o.schema, nil
}

type oneKind struct {
	meta.RESTMapper
	kind string
}

func (o oneKind) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return []schema.GroupVersionKind{resource.GroupVersion().WithKind(o.kind)}, nil
}
