"""A program as users write them with the Python client: `walk.py KUBECONFIG calls|watch`.

`calls` does one round of everything and says so. `watch` prints a line for every change of the ConfigMaps of the
namespace default, as people write such loops: list, watch from there, again from the last version when the stream
ends, and list anew when that version is gone.
"""

import sys
import time

import urllib3
from kubernetes import client, config, watch
from kubernetes.client.rest import ApiException

NAMESPACE = "default"


def say(*words):
    print(*words, flush=True)


def calls(core, apps):
    def named(name, **data):
        return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels={"by": "python"}), data=data)

    made = core.create_namespaced_config_map(NAMESPACE, named("python", k="v"))
    try:
        core.create_namespaced_config_map(NAMESPACE, named("python"))
        raise AssertionError("made twice")
    except ApiException as refused:
        assert (refused.status, refused.reason) == (409, "Conflict"), refused
    core.patch_namespaced_config_map("python", NAMESPACE, {"data": {"l": "w"}})
    made.data = {"k": "late"}
    try:
        core.replace_namespaced_config_map("python", NAMESPACE, made)
        raise AssertionError("an old version was taken")
    except ApiException as refused:
        assert refused.status == 409, refused
    got = core.read_namespaced_config_map("python", NAMESPACE)
    assert got.data == {"k": "v", "l": "w"}, got
    for n in range(5):
        core.create_namespaced_config_map(NAMESPACE, named(f"page-{n}"))
    names, token = [], None
    while token != "":
        page = core.list_namespaced_config_map(NAMESPACE, label_selector="by=python", limit=2, _continue=token)
        names += [item.metadata.name for item in page.items]
        token = page.metadata._continue or ""
    assert names == [f"page-{n}" for n in range(5)] + ["python"], names
    labels = {"app": "web"}
    apps.create_namespaced_deployment(NAMESPACE, client.V1Deployment(
        metadata=client.V1ObjectMeta(name="python"),
        spec=client.V1DeploymentSpec(
            replicas=1,
            selector=client.V1LabelSelector(match_labels=labels),
            template=client.V1PodTemplateSpec(
                metadata=client.V1ObjectMeta(labels=labels),
                spec=client.V1PodSpec(containers=[client.V1Container(name="c", image="i")]),
            ),
        ),
    ))
    apps.patch_namespaced_deployment_scale("python", NAMESPACE, {"spec": {"replicas": 3}})
    assert apps.read_namespaced_deployment_scale("python", NAMESPACE).spec.replicas == 3
    apps.delete_namespaced_deployment("python", NAMESPACE)
    core.delete_collection_namespaced_config_map(NAMESPACE, label_selector="by=python")
    assert core.list_namespaced_config_map(NAMESPACE, label_selector="by=python").items == []
    say("ok")


def follow(core):
    version = None
    while True:
        try:
            if version is None:
                listed = core.list_namespaced_config_map(NAMESPACE)
                version = listed.metadata.resource_version
                say("listed", *(item.metadata.name for item in listed.items))
            stream = watch.Watch().stream(core.list_namespaced_config_map, NAMESPACE, resource_version=version)
            for event in stream:
                version = event["object"].metadata.resource_version
                say(event["type"], event["object"].metadata.name)
        except ApiException as refused:
            if refused.status == 410:
                version = None
            time.sleep(0.2)
        except urllib3.exceptions.HTTPError:
            time.sleep(0.2)


if __name__ == "__main__":
    config.load_kube_config(sys.argv[1])
    if sys.argv[2] == "calls":
        calls(client.CoreV1Api(), client.AppsV1Api())
    else:
        follow(client.CoreV1Api())
