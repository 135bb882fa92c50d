package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// crdPlace is a rule of a definition: self and oldSelf, typed by a structural schema.
func crdPlace(q *query, base *environment.EnvSet) (*place, error) {
	structural, err := structuralOf(q.Schema)
	if err != nil {
		return nil, err
	}
	root := model.SchemaDeclType(structural, q.Root)
	if root == nil {
		return nil, errors.New("the schema has no type that expressions can see")
	}
	// Upstream appends the time in nanoseconds.
	root = root.MaybeAssignTypeName("selfType1")
	old := root.CelType()
	if q.OptionalOldSelf {
		old = types.NewOptionalType(old)
	}
	set, err := extend(base, []cel.EnvOption{cel.Variable("self", root.CelType()), cel.Variable("oldSelf", old)}, root)
	if err != nil {
		return nil, err
	}

	made, err := placed(q, set, root)
	if err != nil {
		return nil, err
	}
	made.bind = func(q *query, values map[string]any) error {
		if q.Self != nil {
			values["self"] = schemacel.UnstructuredToVal(integers(q.Self), structural)
		}
		switch {
		case q.OldSelf != nil && q.OptionalOldSelf:
			values["oldSelf"] = types.OptionalOf(schemacel.UnstructuredToVal(integers(q.OldSelf), structural))
		case q.OldSelf != nil:
			values["oldSelf"] = schemacel.UnstructuredToVal(integers(q.OldSelf), structural)
		case q.OptionalOldSelf:
			values["oldSelf"] = types.OptionalNone
		}
		return nil
	}
	return made, nil
}

func structuralOf(text json.RawMessage) (*schema.Structural, error) {
	var external apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal(text, &external); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&external, &internal, nil); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return schema.NewStructural(&internal)
}

// defineCRD validates a whole definition, or its update when oldCrd is given.
func defineCRD(q *query, a *answer) {
	definition, err := definitionOf(q.CRD)
	if err != nil {
		a.Bad = err.Error()
		return
	}
	if len(q.OldCRD) == 0 {
		a.Warnings = errorTexts(validation.ValidateCustomResourceDefinition(context.Background(), definition))
		return
	}
	old, err := definitionOf(q.OldCRD)
	if err != nil {
		a.Bad = err.Error()
		return
	}
	a.Warnings = errorTexts(validation.ValidateCustomResourceDefinitionUpdate(context.Background(), definition, old))
}

func definitionOf(text json.RawMessage) (*apiextensions.CustomResourceDefinition, error) {
	var external apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(text, &external); err != nil {
		return nil, fmt.Errorf("crd: %w", err)
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(&external)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&external.Spec)
	var internal apiextensions.CustomResourceDefinition
	err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&external, &internal, nil)
	return &internal, err
}

// validateObject runs all rules of a schema over an object: self, and oldSelf for an update.
func validateObject(q *query, a *answer) {
	structural, err := structuralOf(q.Schema)
	if err != nil {
		a.Bad = err.Error()
		return
	}
	validator := schemacel.NewValidator(structural, q.Root, celconfig.PerCallLimit)
	if validator == nil {
		a.Warnings = []string{}
		return
	}
	budget := int64(celconfig.RuntimeCELCostBudget)
	found, left := validator.Validate(context.Background(), field.NewPath("root"), structural, integers(q.Self), integers(q.OldSelf), budget)
	a.Warnings = errorTexts(found)
	if left >= 0 {
		cost := uint64(budget - left)
		a.Cost = &cost
	}
}

func errorTexts(found field.ErrorList) []string {
	out := make([]string, 0, len(found))
	for _, e := range found {
		out = append(out, e.Error())
	}
	return out
}
