package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	resourceapi "k8s.io/api/resource/v1"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
	devicecel "k8s.io/dynamic-resource-allocation/cel"
)

// devicePlace is a selector of a DeviceClass or ResourceClaim. The environment is upstream's own; features are
// ConsumableCapacity (allowMultipleAllocations) and ListTypeAttributes (includes).
func devicePlace(q *query) (*place, error) {
	compiler := devicecel.GetCompiler(devicecel.Features{
		EnableConsumableCapacity: slices.Contains(q.Features, "ConsumableCapacity"),
		EnableListTypeAttributes: slices.Contains(q.Features, "ListTypeAttributes"),
	})
	mode := environment.NewExpressions
	if q.Stored {
		mode = environment.StoredExpressions
	}
	// Only the result of a compilation shows the environment.
	compiled := compiler.CompileCELExpression("true", devicecel.Options{EnvType: &mode})
	if compiled.Error != nil {
		return nil, compiled.Error
	}
	made := &place{env: compiled.Environment, estimator: &library.CostEstimator{SizeEstimator: deviceSizer{}}}
	made.compile = func(expression string) string {
		result := compiler.CompileCELExpression(expression, devicecel.Options{EnvType: &mode})
		if result.Error != nil {
			return result.Error.Error()
		}
		return ""
	}
	made.bind = func(q *query, values map[string]any) error {
		if q.Device == nil {
			return nil
		}
		device, err := deviceValue(q.Device, made)
		values["device"] = device
		return err
	}
	return made, nil
}

// deviceSizer gives the sizes that upstream declares: names and values of attributes are bounded by the API.
type deviceSizer struct{}

func (deviceSizer) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	path := element.Path()
	if len(path) == 0 || path[0] != "device" {
		return nil
	}
	var at *apiservercel.DeclType = declaredDevice
	for _, name := range path[1:] {
		switch name {
		case "@items", "@values":
			at = at.ElemType
		case "@keys":
			at = at.KeyType
		default:
			field, ok := at.Fields[name]
			switch {
			case ok:
				at = field.Type
			case at.ElemType == attributeValue:
				at = attributeValue
			default:
				return nil
			}
		}
		if at == nil {
			return nil
		}
	}
	return &checker.SizeEstimate{Min: 0, Max: uint64(at.MaxElements)}
}

func (deviceSizer) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

var (
	attributeValue = bounded(apiservercel.AnyType, resourceapi.DeviceAttributeMaxValueLength)
	domainName     = bounded(apiservercel.StringType, resourceapi.DeviceMaxDomainLength)
	idName         = bounded(apiservercel.StringType, resourceapi.DeviceMaxIDLength)
	declaredDevice = object("kubernetes.DRADevice", declarations{
		"driver":                   bounded(apiservercel.StringType, resourceapi.DriverNameMaxLength),
		"allowMultipleAllocations": bounded(apiservercel.BoolType, 1),
		"attributes":               nested(attributeValue),
		"capacity":                 nested(apiservercel.QuantityDeclType),
	})
)

func bounded(t *apiservercel.DeclType, max int64) *apiservercel.DeclType {
	out := *t
	out.MaxElements = max
	return &out
}

func nested(value *apiservercel.DeclType) *apiservercel.DeclType {
	const most = resourceapi.ResourceSliceMaxAttributesAndCapacitiesPerDevice
	return apiservercel.NewMapType(domainName, apiservercel.NewMapType(idName, value, most), most)
}

// deviceValue is a device as selectors see it: an unknown domain is an empty map.
func deviceValue(text json.RawMessage, p *place) (map[string]any, error) {
	var device struct {
		Driver                   string                                                    `json:"driver"`
		AllowMultipleAllocations bool                                                      `json:"allowMultipleAllocations"`
		Attributes               map[resourceapi.QualifiedName]resourceapi.DeviceAttribute `json:"attributes"`
		Capacity                 map[resourceapi.QualifiedName]resourceapi.DeviceCapacity  `json:"capacity"`
	}
	if err := json.Unmarshal(text, &device); err != nil {
		return nil, fmt.Errorf("device: %w", err)
	}

	split := func(name resourceapi.QualifiedName) (string, string) {
		if domain, id, found := strings.Cut(string(name), "/"); found {
			return domain, id
		}
		return device.Driver, string(name)
	}
	attributes, capacity := map[string]any{}, map[string]any{}
	for name, attribute := range device.Attributes {
		value, err := attributeOf(attribute)
		if err != nil {
			return nil, fmt.Errorf("attribute %s: %w", name, err)
		}
		domain, id := split(name)
		if attributes[domain] == nil {
			attributes[domain] = map[string]any{}
		}
		attributes[domain].(map[string]any)[id] = value
	}
	for name, one := range device.Capacity {
		domain, id := split(name)
		if capacity[domain] == nil {
			capacity[domain] = map[string]apiservercel.Quantity{}
		}
		capacity[domain].(map[string]apiservercel.Quantity)[id] = apiservercel.Quantity{Quantity: &one.Value}
	}

	adapter := p.env.CELTypeAdapter()
	return map[string]any{
		"driver":                   device.Driver,
		"allowMultipleAllocations": device.AllowMultipleAllocations,
		"attributes":               openMap{types.NewStringInterfaceMap(adapter, attributes), adapter.NativeToValue(map[string]any{})},
		"capacity":                 openMap{types.NewStringInterfaceMap(adapter, capacity), adapter.NativeToValue(map[string]any{})},
	}, nil
}

func attributeOf(attribute resourceapi.DeviceAttribute) (any, error) {
	switch {
	case attribute.IntValue != nil:
		return *attribute.IntValue, nil
	case attribute.BoolValue != nil:
		return *attribute.BoolValue, nil
	case attribute.StringValue != nil:
		return *attribute.StringValue, nil
	case attribute.VersionValue != nil:
		version, err := semver.Parse(*attribute.VersionValue)
		return apiservercel.Semver{Version: version}, err
	}
	return nil, errors.New("unsupported attribute value")
}

type openMap struct {
	traits.Mapper
	missing ref.Val
}

func (m openMap) Find(key ref.Val) (ref.Val, bool) {
	if value, found := m.Mapper.Find(key); found {
		return value, true
	}
	return m.missing, true
}
