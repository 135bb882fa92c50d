package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/mutation"
	"k8s.io/apiserver/pkg/cel/mutation/dynamic"
)

// text renders a value so that two values have the same text only if type and content are the same.
func text(v ref.Val) string {
	switch x := v.(type) {
	case nil:
		return "<nil>"
	case types.Null:
		return "null"
	case types.Bool:
		return strconv.FormatBool(bool(x))
	case types.Int:
		return strconv.FormatInt(int64(x), 10)
	case types.Uint:
		return strconv.FormatUint(uint64(x), 10) + "u"
	case types.Double:
		return double(float64(x))
	case types.String:
		return quote(string(x))
	case types.Bytes:
		return "b" + quote(hex.EncodeToString(x))
	case types.Timestamp:
		return "timestamp(" + x.Time.UTC().Format(time.RFC3339Nano) + ")"
	case types.Duration:
		return "duration(" + strconv.FormatInt(x.Duration.Nanoseconds(), 10) + ")"
	case *types.Type:
		return "type(" + x.TypeName() + ")"
	case *types.Optional:
		if x.HasValue() {
			return "optional(" + text(x.GetValue()) + ")"
		}
		return "optional.none"
	case *apiservercel.Quantity:
		return "quantity(" + x.Quantity.String() + ")"
	case apiservercel.Quantity:
		return "quantity(" + x.Quantity.String() + ")"
	case apiservercel.IP:
		return "ip(" + x.Addr.String() + ")"
	case apiservercel.CIDR:
		return "cidr(" + x.Prefix.String() + ")"
	case apiservercel.Semver:
		return "semver(" + x.Version.String() + ")"
	case apiservercel.URL:
		return "url(" + x.URL.String() + ")"
	case *apiservercel.Format:
		return "format(" + strings.ToLower(x.Name) + ")"
	case apiservercel.Format:
		return "format(" + strings.ToLower(x.Name) + ")"
	case *mutation.JSONPatchVal:
		return "JSONPatch{op: " + quote(x.Op) + ", path: " + quote(x.Path) + ", from: " + quote(x.From) + ", value: " + text(x.Val) + "}"
	case *dynamic.ObjectVal:
		content, err := json.Marshal(x.Value())
		if err != nil {
			return v.Type().TypeName() + "(" + err.Error() + ")"
		}
		return v.Type().TypeName() + string(content)
	case traits.Lister:
		return list(x)
	case traits.Mapper:
		return mapping(v.Type().TypeName(), x)
	}
	return v.Type().TypeName() + "(" + fmt.Sprint(v.Value()) + ")"
}

func list(l traits.Lister) string {
	var parts []string
	for it := l.Iterator(); it.HasNext() == types.True; {
		parts = append(parts, text(it.Next()))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// mapping sorts entries by their text, because the order of Go's maps is random.
func mapping(name string, m traits.Mapper) string {
	var parts []string
	for it := m.Iterator(); it.HasNext() == types.True; {
		k := it.Next()
		parts = append(parts, text(k)+": "+text(m.Get(k)))
	}
	sort.Strings(parts)
	if name == "map" {
		name = ""
	}
	return name + "{" + strings.Join(parts, ", ") + "}"
}

// double writes the shortest digits that read back the same, as 1.5e0.
func double(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	digits, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	n, _ := strconv.Atoi(exponent)
	return digits + "e" + strconv.Itoa(n)
}

func quote(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return strconv.Quote(s)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// native renders a value as JSON for people; it loses types.
func native(v ref.Val) any {
	switch x := v.(type) {
	case nil:
		return nil
	case types.Null:
		return nil
	case types.Double:
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return double(float64(x))
		}
		return float64(x)
	case traits.Lister:
		out := []any{}
		for it := x.Iterator(); it.HasNext() == types.True; {
			out = append(out, native(it.Next()))
		}
		return out
	case traits.Mapper:
		out := map[string]any{}
		for it := x.Iterator(); it.HasNext() == types.True; {
			k := it.Next()
			out[fmt.Sprint(k.Value())] = native(x.Get(k))
		}
		return out
	case *types.Optional:
		if x.HasValue() {
			return map[string]any{"optional": native(x.GetValue())}
		}
		return map[string]any{"optional": nil}
	case types.String, types.Int, types.Uint, types.Bool:
		return v.Value()
	}
	return fmt.Sprint(v.Value())
}
