package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"

	"k8s.io/apiserver/pkg/cel/environment"
)

// dump prints what the base environment declares, in order of names; overloads are in upstream's order.
func dump() {
	set := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	fresh, stored := declaredBy(set.NewExpressionsEnv()), declaredBy(set.StoredExpressionsEnv())
	fmt.Println("compatibility version", environment.DefaultCompatibilityVersion())
	fmt.Println("declared", len(fresh), "the same for stored expressions", slices.Equal(fresh, stored))
	for _, line := range fresh {
		fmt.Println(line)
	}
}

func declaredBy(env *cel.Env) []string {
	var out []string
	for name, function := range env.Functions() {
		for i, overload := range function.OverloadDecls() {
			var args []string
			for _, t := range overload.ArgTypes() {
				args = append(args, checker.FormatCELType(t))
			}
			kind := "global"
			if overload.IsMemberFunction() {
				kind = "member"
			}
			out = append(out, fmt.Sprintf("%s\t%03d\t%s\t%s\t(%s) -> %s", name, i, kind, overload.ID(),
				strings.Join(args, ", "), checker.FormatCELType(overload.ResultType())))
		}
	}
	for _, m := range env.Macros() {
		out = append(out, fmt.Sprintf("MACRO %s/%d receiver=%v", m.Function(), m.ArgCount(), m.IsReceiverStyle()))
	}
	for _, v := range env.Validators() {
		out = append(out, "VALIDATOR "+v.Name())
	}
	for _, l := range env.Libraries() {
		out = append(out, "LIBRARY "+l)
	}
	slices.Sort(out)
	return out
}
