// A program as users write them with client-go, for the tests of the server: `client-go KUBECONFIG calls|informers|custom`.
//
// `calls` does one round of everything with each client and says so. `informers` follows the ConfigMaps of the namespace
// default with each kind of informer and prints a line for every event, and for every list and watch it begins, until it
// is ended. `custom` uses boats, a custom resource, as those do who need no more than metadata of them. Whether lists are watched is client-go's own switch: KUBE_FEATURE_WatchListClient.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const namespace = "default"

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	check(err)
	switch os.Args[2] {
	case "calls":
		calls(config)
	case "informers":
		follow(config)
	case "custom":
		custom(config)
	default:
		panic("calls, informers or custom")
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Lines of several informers do not mix.
var printing sync.Mutex

func say(format string, arguments ...any) {
	printing.Lock()
	defer printing.Unlock()
	fmt.Printf(format+"\n", arguments...)
}

func protobuf(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	return config
}

func calls(config *rest.Config) {
	json := rest.CopyConfig(config)
	json.ContentType = "application/json"
	json.AcceptContentTypes = "application/json"
	typed(json, "json")
	say("json ok")
	typed(protobuf(config), "protobuf")
	say("protobuf ok")
	untyped(config)
	say("dynamic ok")
	metadataOnly(config)
	say("metadata ok")
}

func typed(config *rest.Config, name string) {
	ctx := context.Background()
	client, err := kubernetes.NewForConfig(config)
	check(err)
	maps := client.CoreV1().ConfigMaps(namespace)
	watch, err := maps.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	check(err)
	made, err := maps.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Data:       map[string]string{"k": "v"},
		BinaryData: map[string][]byte{"b": {0, 255}},
	}, metav1.CreateOptions{})
	check(err)
	made.Data["k"] = "w"
	changed, err := maps.Update(ctx, made, metav1.UpdateOptions{})
	check(err)
	made.Data["k"] = "late"
	_, err = maps.Update(ctx, made, metav1.UpdateOptions{})
	if !apierrors.IsConflict(err) {
		panic(fmt.Sprint("no conflict: ", err))
	}
	_, err = maps.Patch(ctx, name, types.StrategicMergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
	check(err)
	got, err := maps.Get(ctx, name, metav1.GetOptions{})
	check(err)
	if got.Data["k"] != "w" || got.BinaryData["b"][1] != 255 || got.UID != changed.UID || got.Labels["a"] != "b" {
		panic(fmt.Sprint("not what was written: ", got))
	}
	listed, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "a=b", Limit: 5})
	check(err)
	if len(listed.Items) != 1 {
		panic(fmt.Sprint("not one: ", listed))
	}
	check(maps.Delete(ctx, name, metav1.DeleteOptions{}))
	_, err = maps.Get(ctx, name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		panic(fmt.Sprint("still there: ", err))
	}
	for _, expected := range []string{"ADDED", "MODIFIED", "MODIFIED", "DELETED"} {
		event := <-watch.ResultChan()
		if string(event.Type) != expected {
			panic(fmt.Sprint(event.Type, " and not ", expected))
		}
	}
	watch.Stop()
	pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	check(err)
	_, err = client.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{ResourceVersion: pods.ResourceVersion})
	check(err)
}

func untyped(config *rest.Config) {
	ctx := context.Background()
	client, err := dynamic.NewForConfig(config)
	check(err)
	maps := client.Resource(configMaps).Namespace(namespace)
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "dynamic"}, "data": map[string]any{"k": "v"},
	}}
	_, err = maps.Create(ctx, object, metav1.CreateOptions{})
	check(err)
	applied, err := maps.Apply(ctx, "dynamic", object, metav1.ApplyOptions{FieldManager: "tests", Force: true})
	check(err)
	if len(applied.GetManagedFields()) == 0 {
		panic("nobody owns anything")
	}
	check(maps.Delete(ctx, "dynamic", metav1.DeleteOptions{}))
}

func metadataOnly(config *rest.Config) {
	ctx := context.Background()
	client, err := metadata.NewForConfig(config)
	check(err)
	namespaces := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	listed, err := namespaces.List(ctx, metav1.ListOptions{})
	check(err)
	if len(listed.Items) < 4 {
		panic(fmt.Sprint("too few: ", listed))
	}
	got, err := namespaces.Get(ctx, "kube-system", metav1.GetOptions{})
	check(err)
	if got.UID == "" {
		panic("no uid")
	}
}

// What controllers do with resources of which they know no more than that they have metadata.
func custom(config *rest.Config) {
	ctx := context.Background()
	resource := schema.GroupVersionResource{Group: "harbour.example.com", Version: "v1", Resource: "boats"}
	client, err := dynamic.NewForConfig(config)
	check(err)
	for _, name := range []string{"skiff", "raft", "punt"} {
		_, err = client.Resource(resource).Namespace(namespace).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "harbour.example.com/v1", "kind": "Boat",
			"metadata": map[string]any{"name": name}, "spec": map[string]any{"oars": int64(2)},
		}}, metav1.CreateOptions{})
		check(err)
	}
	partial, err := metadata.NewForConfig(config)
	check(err)
	boats := partial.Resource(resource).Namespace(namespace)
	watch, err := boats.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=skiff"})
	check(err)
	listed, err := boats.List(ctx, metav1.ListOptions{})
	check(err)
	if len(listed.Items) != 3 {
		panic(fmt.Sprint("not three: ", listed))
	}
	got, err := boats.Get(ctx, "skiff", metav1.GetOptions{})
	check(err)
	patched, err := boats.Patch(ctx, "skiff", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
	check(err)
	if patched.UID != got.UID || patched.Labels["a"] != "b" {
		panic(fmt.Sprint("not what was patched: ", patched))
	}
	check(boats.Delete(ctx, "skiff", metav1.DeleteOptions{}))
	check(boats.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	for _, expected := range []string{"ADDED", "MODIFIED", "DELETED"} {
		event := <-watch.ResultChan()
		if string(event.Type) != expected {
			panic(fmt.Sprint(event.Type, " and not ", expected))
		}
	}
	left, err := boats.List(ctx, metav1.ListOptions{})
	check(err)
	if len(left.Items) != 0 {
		panic(fmt.Sprint("still there: ", left))
	}
	say("custom ok")
}

func follow(config *rest.Config) {
	stop := make(chan struct{})
	typed := func(name string, config *rest.Config) {
		client, err := kubernetes.NewForConfig(told(name, config))
		check(err)
		factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
		listen(name, factory.Core().V1().ConfigMaps().Informer(), stop)
	}
	typed("json", config)
	typed("protobuf", protobuf(config))
	untyped, err := dynamic.NewForConfig(told("dynamic", config))
	check(err)
	listen("dynamic", dynamicinformer.NewFilteredDynamicSharedInformerFactory(untyped, 0, namespace, nil).
		ForResource(configMaps).Informer(), stop)
	partial, err := metadata.NewForConfig(told("metadata", config))
	check(err)
	listen("metadata", metadatainformer.NewFilteredSharedInformerFactory(partial, 0, namespace, nil).
		ForResource(configMaps).Informer(), stop)
	<-stop
}

func listen(name string, informer cache.SharedIndexInformer, stop chan struct{}) {
	key := func(object any) string {
		if last, gone := object.(cache.DeletedFinalStateUnknown); gone {
			object = last.Obj
		}
		accessor, err := meta.Accessor(object)
		check(err)
		return accessor.GetName()
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { say("%s add %s", name, key(object)) },
		UpdateFunc: func(_, object any) { say("%s update %s", name, key(object)) },
		DeleteFunc: func(object any) { say("%s delete %s", name, key(object)) },
	})
	check(err)
	go informer.Run(stop)
	if !cache.WaitForCacheSync(stop, informer.HasSynced) {
		panic(name + " does not come up")
	}
	say("%s synced", name)
}

// A configuration whose lists and watches are told of.
func told(name string, config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return teller{name, next} })
	return config
}

type teller struct {
	name string
	next http.RoundTripper
}

func (t teller) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err == nil {
		query := request.URL.Query()
		what := "list"
		switch {
		case query.Get("sendInitialEvents") == "true":
			what = "watch-list"
		case query.Has("watch"):
			what = "watch"
		}
		say("%s %s %d", t.name, what, response.StatusCode)
	}
	return response, err
}
