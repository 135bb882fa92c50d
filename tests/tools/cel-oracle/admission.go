package main

import (
	"context"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/lazy"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/apiserver/pkg/cel/mutation"
)

// accessor is an expression with the types that its place demands.
type accessor struct {
	expression string
	returns    []*cel.Type
}

func (a accessor) GetExpression() string    { return a.expression }
func (a accessor) ReturnTypes() []*cel.Type { return a.returns }

func returnTypes(names []string) ([]*cel.Type, error) {
	var out []*cel.Type
	for _, name := range names {
		switch name {
		case "Object":
			out = append(out, types.NewObjectType(mutation.ObjectTypeName))
		case "list(JSONPatch)":
			out = append(out, types.NewListType(types.NewObjectType(mutation.JSONPatchTypeName)))
		default:
			t, err := parseType(name)
			if err != nil {
				return nil, err
			}
			out = append(out, t)
		}
	}
	return out, nil
}

// admissionPlace is an expression of an admission policy or of a webhook's match conditions. With patch it is a
// mutation; with variables, `variables` has the fields of those before.
func admissionPlace(q *query, base *environment.EnvSet) (*place, error) {
	request, namespace := plugincel.BuildRequestType(), plugincel.BuildNamespaceType()
	// Its fields are added as the variables are compiled, and seen at once, as upstream.
	composed := apiservercel.NewObjectType("kubernetes.variables", map[string]*apiservercel.DeclField{})
	options := []cel.EnvOption{
		cel.Variable("object", cel.DynType),
		cel.Variable("oldObject", cel.DynType),
		cel.Variable("namespaceObject", namespace.CelType()),
		cel.Variable("request", request.CelType()),
	}
	if q.Params {
		options = append(options, cel.Variable("params", cel.DynType))
	}
	if q.Authorizer {
		options = append(options, cel.Variable("authorizer", library.AuthorizerType),
			cel.Variable("authorizer.requestResource", library.ResourceCheckType))
	}
	set := base
	var err error
	if q.Variables != nil {
		if set, err = extend(set, []cel.EnvOption{cel.Variable("variables", composed.CelType())}, composed); err != nil {
			return nil, err
		}
	}
	if set, err = extend(set, options, namespace, request); err != nil {
		return nil, err
	}
	if q.Patch {
		patch := []cel.EnvOption{common.ResolverEnvOption(&mutation.DynamicTypeResolver{}), environment.UnversionedLib(library.JSONPatch)}
		if set, err = extend(set, patch); err != nil {
			return nil, err
		}
	}

	made, err := placed(q, set, nil)
	if err != nil {
		return nil, err
	}
	composition := compose(made.env, composed, q.Variables)
	made.bind = func(q *query, values map[string]any) error {
		if q.Authorizer {
			values["authorizer"], values["authorizer.requestResource"] = authorizers(q.Decisions)
		}
		if q.Variables != nil {
			values["variables"] = composition.value(values)
		}
		return nil
	}
	made.compile, err = admissionCompiler(q, base)
	return made, err
}

// admissionCompiler asks upstream's own compiler, for its texts and its refusals of types.
func admissionCompiler(q *query, base *environment.EnvSet) (func(string) string, error) {
	if q.Returns == nil {
		return nil, nil
	}
	returns, err := returnTypes(q.Returns)
	if err != nil {
		return nil, err
	}
	composited, err := plugincel.NewCompositedCompiler(base)
	if err != nil {
		return nil, err
	}
	declared := plugincel.OptionalVariableDeclarations{HasParams: q.Params, HasAuthorizer: q.Authorizer, HasPatchTypes: q.Patch}
	mode := environment.NewExpressions
	if q.Stored {
		mode = environment.StoredExpressions
	}
	for _, v := range q.Variables {
		composited.CompileAndStoreVariable(named{accessor{v.Expression, []*cel.Type{cel.AnyType, cel.DynType}}, v.Name}, declared, mode)
	}
	return func(expression string) string {
		if err := composited.CompileCELExpression(accessor{expression, returns}, declared, mode).Error; err != nil {
			return err.Error()
		}
		return ""
	}, nil
}

type named struct {
	accessor
	name string
}

func (n named) GetName() string { return n.name }

// composition is the variables of a policy: compiled in order, evaluated when first read.
type composition struct {
	names    []string
	programs map[string]cel.Program
	failed   map[string]string
	declared *apiservercel.DeclType
}

func compose(env *cel.Env, declared *apiservercel.DeclType, variables []variable) *composition {
	c := &composition{programs: map[string]cel.Program{}, failed: map[string]string{}, declared: declared}
	for _, v := range variables {
		c.names = append(c.names, v.Name)
		compiled, issues := env.Compile(v.Expression)
		if issues != nil {
			c.failed[v.Name] = "compilation failed: " + issues.String()
			declared.Fields[v.Name] = apiservercel.NewDeclField(v.Name, apiservercel.DynType, true, nil, nil)
			continue
		}
		declared.Fields[v.Name] = apiservercel.NewDeclField(v.Name, declType(compiled.OutputType()), true, nil, nil)
		program, err := env.Program(compiled)
		if err != nil {
			c.failed[v.Name] = "program instantiation failed: " + err.Error()
			continue
		}
		c.programs[v.Name] = program
	}
	return c
}

func (c *composition) value(values map[string]any) ref.Val {
	out := lazy.NewMapValue(c.declared)
	for _, name := range c.names {
		out.Append(name, func(*lazy.MapValue) ref.Val {
			if text, failed := c.failed[name]; failed {
				return types.NewErr("composited variable %q fails to compile: %v", name, text)
			}
			v, _, err := c.programs[name].ContextEval(context.Background(), values)
			if err != nil {
				return types.NewErr("composited variable %q fails to evaluate: %v", name, err)
			}
			return v
		})
	}
	return out
}

// declType is what upstream declares a variable as that evaluates to a type.
func declType(t *cel.Type) *apiservercel.DeclType {
	known := map[*cel.Type]*apiservercel.DeclType{
		cel.AnyType: apiservercel.AnyType, cel.BoolType: apiservercel.BoolType, cel.BytesType: apiservercel.BytesType,
		cel.DoubleType: apiservercel.DoubleType, cel.DurationType: apiservercel.DurationType, cel.IntType: apiservercel.IntType,
		cel.NullType: apiservercel.NullType, cel.StringType: apiservercel.StringType,
		cel.TimestampType: apiservercel.TimestampType, cel.UintType: apiservercel.UintType,
	}
	if d, ok := known[t]; ok {
		return d
	}
	if t.HasTrait(traits.ContainerType) && t.HasTrait(traits.IndexerType) {
		switch parameters := t.Parameters(); len(parameters) {
		case 1:
			return apiservercel.NewListType(declType(parameters[0]), -1)
		case 2:
			return apiservercel.NewMapType(declType(parameters[0]), declType(parameters[1]), -1)
		}
	}
	return apiservercel.DynType
}
