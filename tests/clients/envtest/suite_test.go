// What operators do in their envtest suites, for the tests of the server: run it with KUBEBUILDER_ASSETS set to a folder
// with etcd and kube-apiserver, upstream's or ours.
package envtest

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

var (
	environment *envtest.Environment
	config      *rest.Config
	direct      client.Client
	background  = context.Background()

	fleets = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Fleet"}
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	environment = &envtest.Environment{
		CRDDirectoryPaths:     []string{"crds"},
		ErrorIfCRDPathMissing: true,
		WebhookInstallOptions: envtest.WebhookInstallOptions{
			Paths: []string{"webhooks"},
		},
	}
	if controllers := os.Getenv("CONTROLLERS"); controllers != "" {
		environment.ControlPlane.GetAPIServer().Configure().Set("controllers", controllers)
	}

	began := time.Now()
	var err error
	config, err = environment.Start()
	check(err)
	fmt.Printf("started in %d ms\n", time.Since(began).Milliseconds())
	if os.Getenv("HANG") != "" {
		fmt.Println("hanging")
		select {}
	}
	direct, err = client.New(config, client.Options{})
	check(err)

	code := m.Run()
	began = time.Now()
	check(environment.Stop())
	fmt.Printf("stopped in %d ms\n", time.Since(began).Milliseconds())
	os.Exit(code)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("not within 30 s: %s", what)
}

// A namespace of its own for a test, as suites make them: nothing deletes it.
func namespace(t *testing.T) string {
	t.Helper()
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	must(t, direct.Create(background, made))
	return made.Name
}

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data:       map[string]string{"a": "b"},
	}
}

func fleet(namespace, name string, size any) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": size}}}
	made.SetGroupVersionKind(fleets)
	made.SetNamespace(namespace)
	made.SetName(name)
	return made
}

func TestObjectsAreWrittenAndRead(t *testing.T) {
	in := namespace(t)
	made := configMap(in, "one")
	must(t, direct.Create(background, made))
	if err := direct.Create(background, configMap(in, "one")); !apierrors.IsAlreadyExists(err) {
		t.Fatalf("created twice: %v", err)
	}

	stale := made.DeepCopy()
	made.Data["a"] = "c"
	must(t, direct.Update(background, made))
	if err := direct.Update(background, stale); !apierrors.IsConflict(err) {
		t.Fatalf("a stale update: %v", err)
	}

	patched := made.DeepCopy()
	patched.Labels = map[string]string{"app": "web"}
	must(t, direct.Patch(background, patched, client.MergeFrom(made)))
	found := &corev1.ConfigMapList{}
	must(t, direct.List(background, found, client.InNamespace(in), client.MatchingLabels{"app": "web"}))
	if len(found.Items) != 1 || found.Items[0].Data["a"] != "c" {
		t.Fatalf("listed %v", found.Items)
	}

	must(t, direct.Delete(background, made))
	if err := direct.Get(background, client.ObjectKeyFromObject(made), made); !apierrors.IsNotFound(err) {
		t.Fatalf("after the deletion: %v", err)
	}
	must(t, direct.DeleteAllOf(background, &corev1.ConfigMap{}, client.InNamespace(in)))
}

func TestPodsStayAsTheyAre(t *testing.T) {
	in := namespace(t)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: "pod"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	must(t, direct.Create(background, pod))
	if pod.Status.Phase != corev1.PodPending || pod.Spec.NodeName != "" {
		t.Fatalf("phase %q on %q", pod.Status.Phase, pod.Spec.NodeName)
	}

	// A test is its own kubelet.
	pod.Status.Phase = corev1.PodRunning
	must(t, direct.Status().Update(background, pod))
	must(t, direct.Get(background, client.ObjectKeyFromObject(pod), pod))
	if pod.Status.Phase != corev1.PodRunning {
		t.Fatalf("phase %q", pod.Status.Phase)
	}
	must(t, direct.Delete(background, pod, client.GracePeriodSeconds(0)))
}

func TestCustomResourcesHaveTheirSchema(t *testing.T) {
	in := namespace(t)
	made := fleet(in, "one", int64(3))
	must(t, direct.Create(background, made))
	if color, _, _ := unstructured.NestedString(made.Object, "spec", "color"); color != "grey" {
		t.Fatalf("the default is %q", color)
	}
	if err := direct.Create(background, fleet(in, "two", "many")); !apierrors.IsInvalid(err) {
		t.Fatalf("a size that is no number: %v", err)
	}
	if err := direct.Create(background, fleet(in, "three", int64(-1))); !apierrors.IsInvalid(err) {
		t.Fatalf("against its rule: %v", err)
	}

	generation := made.GetGeneration()
	must(t, unstructured.SetNestedField(made.Object, int64(3), "status", "ready"))
	must(t, direct.Status().Update(background, made))
	must(t, direct.Get(background, client.ObjectKeyFromObject(made), made))
	ready, _, _ := unstructured.NestedInt64(made.Object, "status", "ready")
	if ready != 3 || made.GetGeneration() != generation {
		t.Fatalf("status %v of generation %d", made.Object["status"], made.GetGeneration())
	}

	applied := fleet(in, "applied", int64(2))
	must(t, direct.Apply(background, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("one")))
	applied = fleet(in, "applied", int64(5))
	err := direct.Apply(background, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("two"))
	if !apierrors.IsConflict(err) {
		t.Fatalf("another's field: %v", err)
	}
}

func TestUsersHaveTheirPermissions(t *testing.T) {
	in := namespace(t)
	user, err := environment.AddUser(envtest.User{Name: "jane", Groups: []string{"devs"}}, nil)
	must(t, err)
	jane, err := client.New(user.Config(), client.Options{})
	must(t, err)
	if err := jane.Create(background, configMap(in, "one")); !apierrors.IsForbidden(err) {
		t.Fatalf("without a role: %v", err)
	}

	// Not the role "edit": a controller gathers its rules, and there is none.
	must(t, direct.Create(background, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: "devs"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}}},
	}))
	must(t, direct.Create(background, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: "devs"},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "devs"},
		Subjects:   []rbacv1.Subject{{APIGroup: "rbac.authorization.k8s.io", Kind: "Group", Name: "devs"}},
	}))
	eventually(t, "the role is effective", func() bool { return jane.Create(background, configMap(in, "two")) == nil })

	as := rest.CopyConfig(config)
	as.Impersonate = rest.ImpersonationConfig{UserName: "joe", Groups: []string{"devs"}}
	joe, err := client.New(as, client.Options{})
	must(t, err)
	must(t, joe.Create(background, configMap(in, "three")))
}

// A reconciler that writes the size of a Fleet into its status, behind a mutating and a validating webhook.
func TestAManagerReconcilesBehindItsWebhooks(t *testing.T) {
	in := namespace(t)
	options := environment.WebhookInstallOptions
	manager, err := ctrl.NewManager(config, ctrl.Options{
		LeaderElection:          true,
		LeaderElectionID:        "fleets",
		LeaderElectionNamespace: in,
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: options.LocalServingHost, Port: options.LocalServingPort, CertDir: options.LocalServingCertDir,
		}),
	})
	must(t, err)
	manager.GetWebhookServer().Register("/mutate", &webhook.Admission{Handler: mutate{}})
	manager.GetWebhookServer().Register("/validate", &webhook.Admission{Handler: validate{}})

	watched := &unstructured.Unstructured{}
	watched.SetGroupVersionKind(fleets)
	must(t, ctrl.NewControllerManagedBy(manager).For(watched).Owns(&corev1.ConfigMap{}).Complete(
		reconcile.Func(func(context context.Context, request reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{}, reconcileFleet(context, manager.GetClient(), request.NamespacedName)
		})))

	running, stop := context.WithCancel(background)
	ended := make(chan error)
	go func() { ended <- manager.Start(running) }()
	defer func() {
		stop()
		must(t, <-ended)
	}()

	made := fleet(in, "seen", int64(4))
	made.SetLabels(map[string]string{"hooks": "yes"})
	eventually(t, "the webhooks answer", func() bool {
		err := direct.Create(background, made)
		return err == nil || apierrors.IsAlreadyExists(err)
	})
	eventually(t, "the status is written", func() bool {
		if direct.Get(background, client.ObjectKeyFromObject(made), made) != nil {
			return false
		}
		ready, _, _ := unstructured.NestedInt64(made.Object, "status", "ready")
		return ready == 4
	})
	if made.GetAnnotations()["seen-by"] != "webhook" {
		t.Fatalf("annotations %v", made.GetAnnotations())
	}

	refused := fleet(in, "refused", int64(13))
	refused.SetLabels(map[string]string{"hooks": "yes"})
	err = direct.Create(background, refused)
	if !apierrors.IsForbidden(err) || !contains(err.Error(), "13 is unlucky") {
		t.Fatalf("the webhook did not refuse: %v", err)
	}

	// What it owns comes back: the event of the deletion leads to its owner.
	owned := &corev1.ConfigMap{}
	key := types.NamespacedName{Namespace: in, Name: "seen"}
	eventually(t, "the ConfigMap is made", func() bool { return direct.Get(background, key, owned) == nil })
	uid := owned.UID
	must(t, direct.Delete(background, owned))
	eventually(t, "it is made again", func() bool {
		return direct.Get(background, key, owned) == nil && owned.UID != uid
	})
}

func TestControllersRunOnRequest(t *testing.T) {
	in := namespace(t)
	owner := configMap(in, "owner")
	must(t, direct.Create(background, owner))
	owned := configMap(in, "owned")
	owned.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID},
	}
	must(t, direct.Create(background, owned))
	must(t, direct.Delete(background, owner))

	gone := func(object client.Object) func() bool {
		return func() bool {
			return apierrors.IsNotFound(direct.Get(background, client.ObjectKeyFromObject(object), object))
		}
	}
	home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: in}}
	must(t, direct.Delete(background, home))
	if os.Getenv("CONTROLLERS") == "" {
		time.Sleep(time.Second)
		if gone(owned)() || gone(home)() {
			t.Fatal("something deletes objects")
		}
		return
	}
	eventually(t, "what is owned goes with its owner", gone(owned))
	eventually(t, "the namespace is emptied", gone(home))
}

// As suites do that test a start: beside the other one, twice, with nothing left of the first life.
func TestAnotherEnvironmentIsStartedTwice(t *testing.T) {
	other := &envtest.Environment{}
	for life := range 2 {
		config, err := other.Start()
		must(t, err)
		its, err := client.New(config, client.Options{})
		must(t, err)
		made := configMap("default", "once")
		if err := its.Create(background, made); err != nil {
			t.Fatalf("life %d: %v", life, err)
		}
		err = direct.Get(background, client.ObjectKeyFromObject(made), made)
		if !apierrors.IsNotFound(err) {
			t.Fatalf("seen in the other environment: %v", err)
		}
		must(t, other.Stop())
	}
}
