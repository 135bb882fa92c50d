package envtest

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

func contains(text, part string) bool { return strings.Contains(text, part) }

func reconcileFleet(context context.Context, through client.Client, name types.NamespacedName) error {
	fleet := &unstructured.Unstructured{}
	fleet.SetGroupVersionKind(fleets)
	if err := through.Get(context, name, fleet); err != nil {
		return client.IgnoreNotFound(err)
	}

	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	if err := controllerutil.SetControllerReference(fleet, owned, through.Scheme()); err != nil {
		return err
	}
	if err := through.Create(context, owned); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}

	size, _, _ := unstructured.NestedInt64(fleet.Object, "spec", "size")
	if ready, _, _ := unstructured.NestedInt64(fleet.Object, "status", "ready"); ready == size {
		return nil
	}
	if err := unstructured.SetNestedField(fleet.Object, size, "status", "ready"); err != nil {
		return err
	}
	return through.Status().Update(context, fleet)
}

type mutate struct{}

func (mutate) Handle(_ context.Context, request admission.Request) admission.Response {
	fleet := &unstructured.Unstructured{}
	if err := json.Unmarshal(request.Object.Raw, fleet); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	fleet.SetAnnotations(map[string]string{"seen-by": "webhook"})
	changed, err := json.Marshal(fleet)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(request.Object.Raw, changed)
}

type validate struct{}

func (validate) Handle(_ context.Context, request admission.Request) admission.Response {
	fleet := &unstructured.Unstructured{}
	if err := json.Unmarshal(request.Object.Raw, fleet); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if size, _, _ := unstructured.NestedInt64(fleet.Object, "spec", "size"); size == 13 {
		return admission.Denied("13 is unlucky")
	}
	return admission.Allowed("")
}
